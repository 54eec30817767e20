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

const GRAPH = `# What an application is made of, more finely than as tasks: it is divided first.
graph:
  name: pictures
  capacity: {cpu: 800m, memory: 512Mi}   # of one part
  run: {command: [python, -m, http.server, "8000"]}
  vertices:
    - {name: capture, cpu: 200m, near: true}
    - {name: decode, cpu: 300m}
    - {name: detect, cpu: 400m, memory: 128Mi}
    - {name: track, cpu: 300m}
    - {name: alert, cpu: 100m}
    - {name: archive, cpu: 100m, memory: 128Mi}
  edges:
    - {src: capture, dst: decode, bandwidth: {min: 4Mbit, max: 8Mbit}}
    - {src: decode, dst: detect, bandwidth: {min: 10Mbit, max: 20Mbit}}
    - {src: detect, dst: track, bandwidth: {min: 1Mbit, max: 2Mbit}}
    - {src: track, dst: alert, bandwidth: {min: 100kbit, max: 500kbit}}
    - {src: decode, dst: archive, bandwidth: {min: 1Mbit, max: 2Mbit}}
`;

/** Name of the example, and its text. @type {[string, string][]} */
export const EXAMPLES = [
  ["A ring of workers", RING],
  ["A single task", SINGLE],
  ["A malleable job", MALLEABLE],
  ["A graph of an application", GRAPH],
];

/** @param {string} text @returns {boolean} whether nothing of the user's own would be lost with it */
export const replaceable = (text) => !text.trim() || EXAMPLES.some(([, example]) => example === text);
