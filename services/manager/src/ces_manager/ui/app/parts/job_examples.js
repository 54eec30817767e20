/** Job files to begin with. */

const RING = `# Four workers train one small network, combining their gradients around a ring.
name: ring
tasks:
  - name: worker
    replicas: 4
    image: ces-worker-train   # for the docker runtime; the process runtime ignores it
    command: [python, -m, ces_workloads.train, --algorithm, ring]
    resources: {cpu: 500m, memory: 256Mi}
flows:
  topology: ring              # worker i sends to worker i+1
  bandwidth: {min: 10Mbit, max: 50Mbit}
duration: 5m
`;

const SINGLE = `# One program on one node, without flows.
name: hello
tasks:
  - name: main
    image: ces-worker-train   # for the docker runtime; the process runtime ignores it
    command: [python, -c, "import time; print('hello'); time.sleep(60)"]
    resources: {cpu: 250m, memory: 64Mi}
duration: 1m
`;

const MALLEABLE = `# One to four workers: CES decides how many, and changes that while the job runs.
name: malleable
tasks:
  - name: worker              # without replicas
    image: ces-worker-torch   # an image of your own; the process runtime ignores it
    script: /opt/ces/examples/torch_elastic.py
    resources: {cpu: 700m, memory: 900Mi}
flows:
  topology: ring
  direction: reverse
  bandwidth: {min: 5Mbit, max: 40Mbit}
elastic:
  group: worker
  workers: {min: 1, max: 4}
  grace: 30s
`;

/** Name of the example, and its text. @type {[string, string][]} */
export const EXAMPLES = [
  ["A ring of workers", RING],
  ["A single task", SINGLE],
  ["A malleable job", MALLEABLE],
];

/** @param {string} text @returns {boolean} whether nothing of the user's own would be lost with it */
export const replaceable = (text) => !text.trim() || EXAMPLES.some(([, example]) => example === text);
