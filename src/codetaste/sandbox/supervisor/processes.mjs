// Finds the processes of each command in a sandbox, and ends those of one command and no others.
//
// All processes of the PID namespace except the first and the supervisor belong to some command. A command is
// {id, pid}; the running ones are in `commands`, by number.

import fs from "node:fs";

export const MARK = "CODETASTE_COMMAND"; // environment variable with the number of the command
const SWEEP_MS = 8000;

// Parent and session of every process that is not dead, by pid.
function processes() {
  const found = new Map();
  for (const name of fs.readdirSync("/proc")) {
    if (name < "0" || name > ":") continue;
    try {
      const text = fs.readFileSync(`/proc/${name}/stat`, "latin1");
      const [state, parent, , session, ...rest] = text.slice(text.lastIndexOf(")") + 2).split(" ");
      // The first thread may be gone while others still run: then the thread count is above one.
      const dead = "ZXx".includes(state) && Number(rest[13]) <= 1;
      if (!dead) found.set(Number(name), { parent: Number(parent), session: Number(session) });
    } catch {} // it has just ended
  }
  return found;
}

// Root without the capability SYS_PTRACE may read the environment of a process only as its owner.
function environment(pid) {
  const read = () => fs.readFileSync(`/proc/${pid}/environ`, "latin1");
  if (process.getuid() !== 0) return read();
  const { uid, gid } = fs.statSync(`/proc/${pid}`);
  process.setegid(gid);
  process.seteuid(uid);
  try {
    return read();
  } finally {
    process.seteuid(0);
    process.setegid(0);
  }
}

function marked(pid) {
  try {
    const variables = environment(pid).split("\0");
    return Number(variables.find((one) => one.startsWith(`${MARK}=`))?.slice(MARK.length + 1));
  } catch {
    return NaN;
  }
}

// All processes except those of other running commands. A process that was detached by a double fork, a new
// session and a new environment belongs to no command, and is included.
function leftBehind(ended, commands) {
  const roots = new Set();
  for (const one of commands.values()) if (one !== ended && one.pid) roots.add(one.pid);
  const all = processes();
  const foreign = (pid) => {
    for (let one = pid; all.has(one); one = all.get(one).parent) if (roots.has(one)) return true;
    if (roots.has(all.get(pid).session)) return true;
    const command = roots.size ? commands.get(marked(pid)) : undefined;
    return command !== undefined && command !== ended;
  };
  return [...all.keys()].filter((pid) => pid !== 1 && pid !== process.pid && !foreign(pid));
}

function send(name, pids) {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {} // it has just ended
  }
}

const alone = (ended, commands) => [...commands.values()].every((one) => one === ended);
const ALL = [-1]; // of kill(2): all but the first and this one, atomically, so that no fork escapes

// Send a signal to all that `ended` started.
export function signal(name, ended, commands) {
  send(name, alone(ended, commands) ? ALL : leftBehind(ended, commands));
}

// Whether no other process exists, not even a dead one: cheaper than reading all of /proc.
function noOtherProcess() {
  try {
    process.kill(-1, 0);
    return false;
  } catch (fault) {
    return fault.code === "ESRCH";
  }
}

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Kill all that `ended` started; true once nothing of it is left.
export async function sweep(ended, commands) {
  const until = Date.now() + SWEEP_MS;
  for (let round = 0; Date.now() < until; round += 1) {
    if (noOtherProcess()) return true;
    const left = leftBehind(ended, commands);
    if (!left.length) return true;
    const targets = alone(ended, commands) ? ALL : left;
    // A stopped process forks no more; what it has forked before is found in the next round.
    if (round < 3) send("SIGSTOP", targets);
    send("SIGKILL", targets);
    await pause(round < 10 ? 1 : 10);
  }
  return false;
}
