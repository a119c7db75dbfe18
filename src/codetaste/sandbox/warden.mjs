// The program inside every box: it runs commands and forwards ways out, as told over one connection.
//
// Its other end, and the frames they speak, are in warden.py. It runs as the same user as the commands, so a
// command can stop or kill it; whoever is at the other end sees that.

import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import { dirname } from "node:path";

import { MARK, signal, sweep } from "./warden_processes.mjs";

const HEADER = 9;
const STREAMS_AT_ONCE = 1024;

const order = JSON.parse(process.argv[2]);
process.title = "codetaste"; // `pkill node` is what agents say to end their own servers
const commands = new Map(); // the running ones by their number
let control = null;
// An image's options for Node are its commands', not ours; warden.py has put them aside.
const { CODETASTE_NODE_OPTIONS: options, ...inherited } = process.env;
const base = options ? { ...inherited, NODE_OPTIONS: options } : inherited;

process.on("uncaughtException", (fault) => {
  process.stderr.write(`${fault.stack}\n`);
  process.exit(70);
});

function send(kind, id, payload = Buffer.alloc(0)) {
  const head = Buffer.alloc(HEADER);
  head.writeUInt32BE(payload.length, 0);
  head.write(kind, 4, "latin1");
  head.writeUInt32BE(id, 5);
  // What is said in one turn goes in one piece: waking who listens is what costs.
  if (!control.writableCorked) {
    control.cork();
    setImmediate(() => control.uncork());
  }
  control.write(head);
  control.write(payload);
}

function number(value) {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(value, 0);
  return payload;
}

// --- ways out -------------------------------------------------------------------------------------------

function forward([port, path]) {
  return new Promise((ready) => {
    const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
      const far = net.connect({ path, allowHalfOpen: true });
      near.pipe(far).pipe(near); // each ends the other once it has said all
      // Who hangs up is heard at the other end at once; an orderly end has been passed on already.
      near.on("error", () => far.destroy()).on("close", () => near.readableEnded || far.destroy());
      far.on("error", () => near.resetAndDestroy()).on("close", () => far.readableEnded || near.destroy());
    });
    server.maxConnections = STREAMS_AT_ONCE;
    server.listen(port, "127.0.0.1", ready);
  });
}

// --- standard input -------------------------------------------------------------------------------------

// Standard input is a file without a name: a FIFO that was written and closed could not be opened by name.
function openFile() {
  return inScratch((place) => fs.openSync(`${place}/stdin`, "wx+", 0o600));
}

function inScratch(make) {
  let problem;
  for (const folder of [os.tmpdir(), "/dev/shm"]) {
    try {
      const place = fs.mkdtempSync(`${folder}/.codetaste-`);
      try {
        return make(place);
      } finally {
        fs.rmSync(place, { recursive: true });
      }
    } catch (fault) {
      problem ??= fault;
    }
  }
  throw new Error(`nothing can be written to the temporary folder inside: ${problem.message}`);
}

// --- commands -------------------------------------------------------------------------------------------

function take(id, asked) {
  const command = { id, asked, pid: 0, input: null, memory: memoryKills(), over: false };
  commands.set(id, command);
  attempt(command, () => {
    if (!fs.statSync(asked.workdir, { throwIfNoEntry: false })?.isDirectory()) {
      throw new Error(`there is no folder ${asked.workdir} inside`);
    }
    if (asked.stdin) command.input = openFile();
    else start(command);
  });
}

function feed(command, chunk) {
  if (command.pid || command.over || command.input === null) return;
  attempt(command, () => {
    for (let at = 0; at < chunk.length; ) at += fs.writeSync(command.input, chunk, at);
    if (chunk.length) send("C", command.id, number(chunk.length));
    else start(command);
  });
}

function attempt(command, action) {
  try {
    action();
  } catch (fault) {
    ended(command, null, fault);
  }
}

function start(command) {
  const { argv, env, workdir, outputs } = command.asked;
  const opened = [];
  const open = (path, flag) => opened[opened.push(fs.openSync(path, flag)) - 1];
  let child;
  try {
    const input = command.input === null ? "ignore" : open(`/proc/self/fd/${command.input}`, "r");
    // Pipes that are read at the other end: none of what is written comes by here.
    const written = outputs.map((name) => open(`${dirname(order.socket)}/${name}`, fs.constants.O_WRONLY));
    child = spawn(argv[0], argv.slice(1), {
      cwd: workdir,
      env: { ...base, ...env, [MARK]: String(command.id) },
      stdio: [input, ...written],
      detached: true,
    });
  } finally {
    opened.forEach((fd) => fs.closeSync(fd));
  }
  command.pid = child.pid ?? 0;
  child.once("error", (fault) => ended(command, null, fault));
  child.once("exit", (code, name) => ended(command, code ?? 128 + os.constants.signals[name]));
  try {
    // When memory runs out the command goes first, and not this program.
    fs.writeFileSync(`/proc/${child.pid}/oom_score_adj`, "1000");
  } catch {} // it has just ended
}

function kill(command, graceMs) {
  if (!command.pid) return void ended(command, 128 + os.constants.signals.SIGTERM);
  signal("SIGTERM", command, commands);
  setTimeout(() => command.over || sweep(command, commands), graceMs);
}

async function ended(command, code, fault) {
  if (command.over) return;
  command.over = true;
  const swept = await sweep(command, commands);
  if (command.input !== null) fs.closeSync(command.input);
  commands.delete(command.id);
  const [status, said] = { ENOENT: [127, "not found"], EACCES: [126, "permission denied"] }[fault?.code] ?? [];
  if (fault && !said) return send("N", command.id, Buffer.from(String(fault.message).slice(0, 1000)));
  const end = { code: status ?? code, swept, memory: memoryKills() > command.memory };
  if (said) end.said = `${command.asked.argv[0].slice(0, 1000)}: ${said}\n`;
  send("X", command.id, Buffer.from(JSON.stringify(end)));
}

const MEMORY = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"].find(fs.existsSync);

// How often the kernel has killed somebody in this box because its memory was used up.
function memoryKills() {
  if (!MEMORY) return 0;
  return Number(fs.readFileSync(MEMORY, "latin1").match(/^oom_kill (\d+)$/m)?.[1] ?? 0);
}

// --- the connection -------------------------------------------------------------------------------------

function obey(kind, id, payload) {
  const command = commands.get(id);
  if (kind === "P") send("P", id);
  else if (kind === "S") process.exit(0);
  else if (kind === "R") take(id, JSON.parse(payload.toString("utf8")));
  else if (!command) return; // it has ended meanwhile
  else if (kind === "I") feed(command, payload);
  else if (kind === "K") kill(command, payload.readUInt32BE(0));
}

function listen() {
  let held = Buffer.alloc(0);
  control.on("data", (chunk) => {
    held = held.length ? Buffer.concat([held, chunk]) : chunk;
    while (held.length >= HEADER) {
      const size = held.readUInt32BE(0);
      if (held.length < HEADER + size) break;
      const kind = held.toString("latin1", 4, 5);
      obey(kind, held.readUInt32BE(5), held.subarray(HEADER, HEADER + size));
      held = held.subarray(HEADER + size);
    }
  });
  for (const event of ["end", "error", "close"]) control.on(event, () => process.exit(0));
}

if (process.getuid() === 0) {
  // The only privileges that a box of this machine leaves are there to be given up here.
  process.setgroups([]);
  process.setgid(order.gid);
  process.setuid(order.uid);
}
setTimeout(() => process.exit(3), Math.min(order.lifetime_s * 1000, 2 ** 31 - 1));
await Promise.all(order.ways.map(forward));
control = net.connect({ path: order.socket }, () => {
  send("H", 0, Buffer.from(order.secret));
  listen();
});
control.on("error", (fault) => {
  process.stderr.write(`no connection: ${fault.message}\n`);
  process.exit(4);
});
