// Qwen Code calls os.userInfo() when it starts and fails if /etc/passwd has no entry for the user, as in some images.
const os = require('node:os');
const systemUserInfo = os.userInfo;
os.userInfo = (options) => {
  try {
    return systemUserInfo(options);
  } catch {
    return { username: 'agent', uid: process.getuid(), gid: process.getgid(), shell: null, homedir: os.homedir() };
  }
};
require('node:module').syncBuiltinESMExports();
