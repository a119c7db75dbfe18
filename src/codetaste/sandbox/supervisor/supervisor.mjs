// The supervisor in every sandbox: it runs commands and forwards ports, controlled over one connection.
//
// The host side and the frames of the protocol are in supervisor/client.py and supervisor/protocol.py. It runs as
// the user of the commands, so a command can stop or kill it; the host detects that. Where the host may run
// commands as root it stays root, and changes the user for each command.

import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import { dirname } from "node:path";

import { MARK, signal, sweep } from "./processes.mjs";

const HEADER = 9;
const STREAMS_AT_ONCE = 1024;

// What no command of another user can change, as sudo has it: PATH has no folder of uid 1000.
const ROOT = {
  HOME: "/root",
  USER: "root",
  LOGNAME: "root",
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
};

const settings = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
process.title = "codetaste"; // so that `pkill node`, by which agents end their own servers, spares it
const commands = new Map(); // the running ones, by number
let control = null;
// NODE_OPTIONS of the image are for its commands only; the start script has set them aside.
const { CODETASTE_NODE_OPTIONS: options, ...inherited } = process.env;
const base = { ...inherited, ...(options ? { NODE_OPTIONS: options } : {}), ...settings.env };

process.on("uncaughtException", (fault) => {
  process.stderr.write(`${fault.stack}\n`);
  process.exit(70);
});

function send(kind, id, payload = Buffer.alloc(0)) {
  const head = Buffer.alloc(HEADER);
  head.writeUInt32BE(payload.length, 0);
  head.write(kind, 4, "latin1");
  head.writeUInt32BE(id, 5);
  // All frames of one turn are sent in one piece, because waking the receiver is the main cost.
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

// --- forwarded ports ------------------------------------------------------------------------------------

function forward([port, path]) {
  return new Promise((ready) => {
    const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
      const far = net.connect({ path, allowHalfOpen: true });
      near.pipe(far).pipe(near); // the end of each is passed on to the other
      // A closed connection closes the other at once; a regular end has been passed on already.
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
  return inTemporaryFolder((place) => {
    const path = `${place}/stdin`;
    const descriptor = fs.openSync(path, "wx+", 0o600);
    fs.unlinkSync(path);
    fs.fchmodSync(descriptor, 0o644); // so that a command of another user can open /dev/stdin
    return descriptor;
  });
}

function inTemporaryFolder(make) {
  let problem;
  for (const folder of [os.tmpdir(), "/dev/shm"]) {
    try {
      const place = fs.mkdtempSync(`${folder}/.codetaste-`);
      try {
        return make(place);
      } finally {
        fs.rmdirSync(place);
      }
    } catch (fault) {
      problem ??= fault;
    }
  }
  throw new Error(`no temporary folder in the sandbox is writable: ${problem.message}`);
}

// --- commands -------------------------------------------------------------------------------------------

function run(id, request) {
  const command = { id, request, pid: 0, input: null, memory: memoryKills(), over: false };
  commands.set(id, command);
  attempt(command, () => {
    if (!fs.statSync(request.workdir, { throwIfNoEntry: false })?.isDirectory()) {
      throw new Error(`there is no folder ${request.workdir} in the sandbox`);
    }
    if (request.stdin) command.input = openFile();
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
  const { argv, env, workdir, outputs, root } = command.request;
  const opened = [];
  const open = (path, flag) => opened[opened.push(fs.openSync(path, flag)) - 1];
  let child;
  try {
    const input = command.input === null ? "ignore" : open(`/proc/self/fd/${command.input}`, "r");
    // The host reads these pipes; the supervisor sees none of the output.
    const written = outputs.map((name) => open(`${dirname(settings.socket)}/${name}`, fs.constants.O_WRONLY));
    child = spawn(argv[0], argv.slice(1), {
      cwd: workdir,
      env: { ...base, ...(root ? ROOT : {}), ...env, [MARK]: String(command.id) },
      // With a uid, all supplementary groups are dropped, too.
      ...(settings.root && !root ? { uid: settings.uid, gid: settings.gid } : {}),
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
    // When memory runs out the command is killed before the supervisor.
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
  const [status, reason] = { ENOENT: [127, "not found"], EACCES: [126, "permission denied"] }[fault?.code] ?? [];
  if (fault && !reason) return send("N", command.id, Buffer.from(String(fault.message).slice(0, 1000)));
  const report = { code: status ?? code, swept, memory: memoryEnd(command.memory) };
  if (reason) report.message = `${command.request.argv[0].slice(0, 1000)}: ${reason}\n`;
  send("X", command.id, Buffer.from(JSON.stringify(report)));
}

const CGROUP = "/sys/fs/cgroup";
const SPARE_BYTES = 1024 ** 2; // a process that asks for more than is left is killed before the limit is reached
const MEMORY = ["memory.events", "memory/memory.oom_control"].find((file) => fs.existsSync(`${CGROUP}/${file}`));

function memoryNumber(file, name = "") {
  const text = fs.readFileSync(`${CGROUP}/${file}`, "latin1");
  return Number(text.match(new RegExp(`^${name}(\\d+)$`, "m"))?.[1] ?? 0);
}

// Number of processes that the kernel has killed as memory ran out, of the sandbox or of the host.
function memoryKills() {
  return MEMORY ? memoryNumber(MEMORY, "oom_kill ") : 0;
}

// Whose memory ran out since there were `before` kills. Only the sandbox's own limit can be its commands' fault.
function memoryEnd(before) {
  if (memoryKills() === before) return "";
  if (MEMORY === "memory.events") return memoryNumber(MEMORY, "oom ") ? "LIMIT" : "HOST";
  const [most, limit] = ["max_usage", "limit"].map((name) => memoryNumber(`memory/memory.${name}_in_bytes`));
  return most >= limit - SPARE_BYTES ? "LIMIT" : "HOST";
}

// --- the connection -------------------------------------------------------------------------------------

function dispatch(kind, id, payload) {
  const command = commands.get(id);
  if (kind === "P") send("P", id);
  else if (kind === "S") process.exit(0);
  else if (kind === "R") run(id, JSON.parse(payload.toString("utf8")));
  else if (!command) return; // it has ended meanwhile
  else if (kind === "I") feed(command, payload);
  else if (kind === "K") kill(command, payload.readUInt32BE(0));
}

function listen() {
  let rest = Buffer.alloc(0);
  control.on("data", (chunk) => {
    rest = rest.length ? Buffer.concat([rest, chunk]) : chunk;
    while (rest.length >= HEADER) {
      const size = rest.readUInt32BE(0);
      if (rest.length < HEADER + size) break;
      const kind = rest.toString("latin1", 4, 5);
      dispatch(kind, rest.readUInt32BE(5), rest.subarray(HEADER, HEADER + size));
      rest = rest.subarray(HEADER + size);
    }
  });
  for (const event of ["end", "error", "close"]) control.on(event, () => process.exit(0));
}

if (process.getuid() === 0 && !settings.root) {
  // A local sandbox of root starts with the privileges to change the user, which are given up here.
  process.setgroups([]);
  process.setgid(settings.gid);
  process.setuid(settings.uid);
}
setTimeout(() => process.exit(3), Math.min(settings.lifetime_s * 1000, 2 ** 31 - 1));
await Promise.all(settings.forwards.map(forward));
control = net.connect({ path: settings.socket }, () => {
  send("H", 0, Buffer.from(settings.secret));
  listen();
});
control.on("error", (fault) => {
  process.stderr.write(`no connection: ${fault.message}\n`);
  process.exit(4);
});
