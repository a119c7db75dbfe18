// Whose process is whose inside of a box, and how all that a command started is ended, and nothing else.
//
// The process namespace is ours: all processes in it but the first and this one belong to some command. A
// command is {id, pid}; those that run are in `commands`, by their number.

import fs from "node:fs";

export const MARK = "CODETASTE_COMMAND"; // a variable that says the command's number
const SWEEP_MS = 8000;

// Every process that is not dead: its parent and its session, by its number.
function processes() {
  const found = new Map();
  for (const name of fs.readdirSync("/proc")) {
    if (name < "0" || name > ":") continue;
    try {
      const text = fs.readFileSync(`/proc/${name}/stat`, "latin1");
      const [state, parent, , session, ...rest] = text.slice(text.lastIndexOf(")") + 2).split(" ");
      // The first thread may be gone while others run on: then it counts more than itself.
      const dead = "ZXx".includes(state) && Number(rest[13]) <= 1;
      if (!dead) found.set(Number(name), { parent: Number(parent), session: Number(session) });
    } catch {} // it has just ended
  }
  return found;
}

function marked(pid) {
  try {
    const variables = fs.readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
    return Number(variables.find((one) => one.startsWith(`${MARK}=`))?.slice(MARK.length + 1));
  } catch {
    return NaN;
  }
}

// All processes but those of the commands that run beside `ended`. A command cannot get rid of its own by
// forking twice, in a session and with an environment of its own: whoever belongs to nobody goes too.
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
const ALL = [-1]; // the kernel's own: all but the first and this one, and nobody can fork away from it

// Send a signal to all that `ended` started.
export function signal(name, ended, commands) {
  send(name, alone(ended, commands) ? ALL : leftBehind(ended, commands));
}

// Whether there is nobody else, not even somebody dead: cheaper than to look at everybody.
function deserted() {
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
    if (deserted()) return true;
    const left = leftBehind(ended, commands);
    if (!left.length) return true;
    const whom = alone(ended, commands) ? ALL : left;
    // Who is stopped forks no more, and what it has forked is found in the next round.
    if (round < 3) send("SIGSTOP", whom);
    send("SIGKILL", whom);
    await pause(round < 10 ? 1 : 10);
  }
  return false;
}
