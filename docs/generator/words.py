"""What settings and fields of files mean: one sentence each. The generator refuses one without."""

SETTINGS = {
    # every service
    "CES_NATS_URLS": "NATS servers, separated by commas. An agent uses what it was told when it joined.",
    "CES_NATS_CREDS": "The service's NATS credentials file (`.creds`). An agent keeps its own in its state folder.",
    "CES_CA": "File with the authority that certifies NATS ([TLS](tls.md)), and for an agent the manager; left out, "
    "those that the machine trusts. An agent whose join token names an authority needs none.",
    "CES_METRICS_TOKEN_FILE": "File with a token by which `/metrics` [may be read](metrics.md#who-may-read-them). Left "
    "out: the manager tells operators, any other service its own machine.",
    "CES_HTTP_HOST": "Address on which `/healthz`, `/readyz` and `/metrics` (the manager: the whole API) are served.",
    "CES_HTTP_PORT": "Their port; 0 takes any free one, which the log names.",
    "CES_LOG_LEVEL": "How much is logged.",
    "CES_RESYNC_S": "Seconds after which the manager's snapshot, or a node's desired state, is read again unasked.",
    # manager and scheduler
    "CES_QUEUE": "File with [the queue's parameters and tenants](scheduler.md#the-queue), the same for both services; "
    "left out, all defaults.",
    # manager
    "CES_DATABASE_URL": "`sqlite:///FILE` or `postgresql://USER@HOST/NAME`.",
    "CES_MIGRATE": "Bring the schema up to date at start, waiting for a database that is not there yet.",
    "CES_OIDC_ISSUER": "URL of [an OpenID provider](access.md#people-who-sign-in-elsewhere) whose tokens admit too.",
    "CES_OIDC_AUDIENCE": "Whom its tokens must be for.",
    "CES_OIDC_CA": "File with the authority of its certificate; left out, those that the machine trusts.",
    "CES_OIDC_GRANTS": "File that says which group has which role; goes with `CES_OIDC_ISSUER`.",
    "CES_ADMIN_TOKEN_FILE": "File with the API's bearer token: at least 16 characters, readable by its owner only.",
    "CES_AGENT_SIGNING_KEY_FILE": "File with the key that signs agents' NATS credentials.",
    "CES_ADDRESS_BLOCK": "Block of IPv4 addresses for workers, within 10.64.0.0/10; each node gets a /24 of it. "
    "[Regions](regions.md) have one each.",
    "CES_REGION": "Name of [this region](regions.md): 1 to 16 lower-case letters and digits; left out, the cluster is "
    "none.",
    "CES_CREDENTIAL_DAYS": "Days for which a node's NATS credential is good; its agent renews it at half of them.",
    "CES_METRICS_OF_LINKS": "Tell [some series for each link](metrics.md#what-it-costs).",
    "CES_UI": "Serve [the dashboard](dashboard.md) under `/ui/`.",
    "CES_RETENTION_DAYS": "Days for which settled jobs are kept, with their plans and allocations.",
    "CES_REVOCATION_KEY_FILE": "File with the key by which forgotten nodes and replaced devices are refused; "
    "left out, they are not.",
    "CES_SECRETS_KEY_FILE": "File with the keys that encrypt [jobs' secrets](secrets.md#the-keys); left out, "
    "none are kept.",
    "CES_ADVERTISED_NATS_URLS": "NATS servers that joining agents are told; `CES_NATS_URLS` where left out.",
    "CES_NATS_REPLICAS": "On how many servers of a NATS cluster at least a copy of each stream lies; the manager "
    "[adds copies and takes none away](state.md#streams-that-are-kept).",
    "CES_TLS_DIR": "Folder of the authority and of the API's certificate, [made at the first start](tls.md); left out, "
    "the API is plain HTTP.",
    "CES_NATS_CERTIFICATE": "File that NATS reads its certificate from, which the manager makes and renews.",
    "CES_TLS_NAMES": "Host names and addresses, separated by commas, that certificates are good for, besides this "
    "machine and the hosts of NATS's URLs.",
    "CES_CERTIFICATE_DAYS": "Days for which the certificates that the manager makes are good.",
    "CES_LEASE_S": "Seconds for which a node's workers may run without word from the manager.",
    "CES_LEASE_MARGIN_S": "Seconds beyond the lease before silent workers count as gone; ending them may take 3.",
    "CES_TRACE_RATIO": "Share of the submitted jobs that are [traced](traces.md), 0 to 1.",
    "CES_UNREACHABLE_S": "Seconds of silence after which a node gets no new work; less than `CES_LEASE_S`.",
    "CES_PLANNED_DEADLINE_S": "Longest time in seconds in state `planned` before the job is placed again.",
    "CES_PREPARING_DEADLINE_S": "The same for `preparing`.",
    "CES_STARTING_DEADLINE_S": "The same for `starting`.",
    "CES_MAX_APPLICANTS": "Devices that may [have applied](node-install.md#devices-that-apply) to be made nodes, at a "
    "time; 0: none may.",
    "CES_MAX_DEADLINE_MISSES": "Deadlines that a job may miss in a row before it fails; each doubles the next.",
    "CES_TICK_S": "Seconds between checks for leases and deadlines that have passed.",
    # federation
    "CES_REGIONS_FILE": "File with the other regions, and [what each is trusted "
    "with](regions.md#who-is-trusted-with-what); readable by its owner only.",
    "CES_WIRE_CREDS": "NATS credentials file for the account that reaches other regions.",
    "CES_REGION_CHOICE": "What chooses [the regions that are asked](region-choice.md): the `rule`, or a `policy`.",
    "CES_REGION_POLICY": "File with the policy that chooses; left out, the one that ships with the service.",
    # scheduler
    "CES_SOLVER": "A solver that `ces solvers` lists.",
    "CES_SOLVE_TIME_LIMIT_S": "Seconds that waiting jobs share to make their plans better; 0: as the solver sees fit.",
    "CES_QUEUE_POLICY": "What decides over the queue: `ces-multi`, or a policy that an installed package adds.",
    "CES_QUEUE_RECORD": "File that gets a line of JSON for each cycle of the queue: its inputs and its decisions, but "
    "for [when owners are expected](lent-nodes.md#when-its-owner-is-expected). It grows without end.",
    "CES_RESIZE_S": "Least seconds between two changes of a malleable job's size, and two growths of its CPU.",
    "CES_AMOUNTS": "[With how much CPU](malleable.md#with-how-much-cpu-a-job-begins) jobs begin where CES chooses it: "
    "`even`, `patient` or `tapfinger`.",
    "CES_CARD_WEIGHT": "What a GPU card of fragments counts beside the composite, 0 to 1; "
    "[what is left over](gpus.md#what-is-left-over); 0: nothing.",
    "CES_REFILL_S": "Least seconds between two attempts to give running flows bandwidth that has become free.",
    "CES_PATHS": "Number of shortest simple paths that flows of new jobs may choose from; 0: only hop-shortest ones.",
    "CES_POLICY": "File with the policy of a learned solver; left out, the one that ships with CES (`default`: none).",
    "CES_EVOLUTION": "Folder of [a policy that improves by itself](evolution.md): decisions are logged there, and the "
    "version that is live in it decides; left out, neither.",
    "CES_EVOLUTION_MODE": "`log`: no more than that; `shadow`: candidates are compared with the live version, in a "
    "process at idle priority; `auto`: they are also promoted, and taken back.",
    "CES_EVOLUTION_LOG": "What the log may take, 1 MiB at least; the oldest decisions go.",
    # network-ctl
    "CES_RESERVE": "Whether flows get what was planned. `false`: nothing is reserved, and all flows share links alike.",
    # edge-agent
    "CES_NODE": "The node's name: letters, digits, `_` and `-`, at most 63.",
    "CES_MANAGER_URL": "Where to join; used until the node has joined, and where its credential has ended.",
    "CES_INSECURE": "Whether the agent may join a manager, and be told of a NATS, on another machine in the clear.",
    "CES_JOIN_TOKEN": "The one-time token from `ces node token`; needed until the node has joined.",
    "CES_JOIN_TOKEN_FILE": "File with the token, instead; the agent deletes it once the node has joined.",
    "CES_STATE_DIR": "Folder for credentials, desired state, lease, worker records and logs. Keep it across restarts.",
    "CES_NODE_CPU": "CPU offered to jobs, such as `4` or `3500m`; all cores where left out.",
    "CES_NODE_MEMORY": "Memory offered to jobs, such as `6Gi`; all of it where left out, of a "
    "[lent device](lent-nodes.md) 90 %, which is the most that it may offer.",
    "CES_GPU_FAKE": "GPU cards to offer instead of the machine's own, for trials: `GPU-a:T4:16Gi,GPU-b:P100:16Gi`.",
    "CES_GPU_SHARES": "Whether jobs may have a part of a card each. They are counted, and not kept apart.",
    "CES_NODE_GPU": "GPUs offered to jobs; all that `nvidia-smi` knows where left out. More are mere numbers (`gpu0`).",
    "CES_NODE_ARCH": "Architecture that tasks may ask for: `amd64`, `arm64`, ...",
    "CES_NODE_LABELS": "Labels that tasks may ask for: `site=roof,floor=3`.",
    "CES_NODE_POSITION": "[Where the node is](applications.md#what-is-known-of-nodes-and-links), as `LAT,LON` in "
    "degrees: `51.0504,13.7373`.",
    "CES_NODE_COVERAGE": "Metres around it within which users of applications reach the node.",
    "CES_HOST_ADDRESS": "IP address at which other nodes' hosts reach this one: the end of its tunnels. A loopback "
    "address is for nodes on the manager's machine.",
    "CES_RUNTIME": "How workers run.",
    "CES_NETWORK": "`tc` routes, shapes and measures, and needs root; `none` does none of it.",
    "CES_DATA_PLANE": "Name of the network namespace that holds the data plane.",
    "CES_WIREGUARD_PORT": "UDP port of this host where it takes the packets of encrypted links.",
    "CES_LINK_KEY_DAYS": "Days after which [the key](data-plane.md#encrypted-links) of encrypted links is replaced.",
    "CES_CLUSTER": "Tells containers and namespaces of several clusters on one machine apart.",
    "CES_SANDBOX_IMAGE": "Image of the pause containers that hold workers' networks (`docker` runtime).",
    "CES_ALLOWED_IMAGES": "[Patterns](workers.md#images) of the images that workers may use, separated by commas "
    "(`docker` runtime).",
    "CES_PULL_IMAGES": "Whether an allowed image that the engine lacks may be pulled.",
    "CES_WORKER_DISK": "What a worker may keep in its folder, and the size of any file of its own; 1 MiB at least. "
    "[How it is held to that](workers.md#how-much-it-may-keep).",
    "CES_HIDE": "Files and folders that workers of the `process` runtime do not see, separated by commas, besides the "
    "agent's own, `/root`, `/etc/ces` and `/run`; needs an agent that is root.",
    "CES_WORKER_UIDS": "User ids of workers (`process` runtime, an agent that is root), one for each allocation: "
    "`FIRST-LAST`, or a single one that all share. Nobody else on the machine may have them.",
    "CES_CHECKPOINT_COPY_S": "How often, in seconds, a malleable job's newest checkpoint on this node is packed, to be "
    "[copied to another node](checkpoints.md); 1 at least.",
    "CES_DATASETS": "Absolute path of the folder with the data that jobs may read here (`inputs`), apart from "
    "`CES_STATE_DIR`: each folder directly in it is a dataset.",
    "CES_MEASURE": "Whether the agent [measures how fast its node is](node-scores.md), once for each boot, after it "
    "has joined.",
    "CES_HEARTBEAT_S": "Seconds between heartbeats.",
    "CES_STOP_GRACE_S": "Seconds between SIGTERM and SIGKILL when a worker is stopped.",
    "CES_LOG_KEEP_S": "Seconds for which logs of ended workers are kept.",
    "CES_POWER_IDLE": "Watts that the machine uses without work; with `CES_POWER_PEAK`, [the "
    "model](energy.md#where-it-is-known-from) where nothing measures its energy.",
    "CES_POWER_PEAK": "Watts that it uses with all of its CPU.",
    "CES_POWER_CURVE": "Instead of both: its watts at 0, 10, ... 100 % of its CPU, eleven numbers separated by commas.",
    "CES_POWERCAP": "Folder in which the kernel shows the processor's [energy "
    "counters](energy.md#where-it-is-known-from).",
    "CES_LENT": "Whether the device has an owner, who [lends it](lent-nodes.md) and has it back at any time.",
    "CES_OWNER_GROUP": "Control group of the owner's programs, such as `user.slice`, whose CPU time alone decides "
    "about the loan; left out, that of all but CES's workers and agent.",
    "CES_LENT_QUIET_S": "Seconds for which the owner must be quiet before the device is lent; they double after each "
    "reclaim, up to an hour.",
    "CES_LENT_BELOW": "Percent of the whole CPU below which the owner counts as quiet.",
    "CES_RECLAIM_AT": "Percent of the whole CPU that reclaim the device where the owner uses them for a second; above "
    "`CES_LENT_BELOW`.",
}

JOB_FIELDS = {
    # field -> (what it means, an example: YAML that is checked against the field)
    "JobFile.name": (
        "What people call the job: `a-z`, `0-9` and `-`, at most 63. Names may repeat; the id tells jobs apart.",
        "name: digits-ring",
    ),
    "JobFile.priority": (
        "Higher goes first, other things equal: what the job takes, its waiting time and its tenant's share count too. "
        "[Your token](access.md#tenants) may have a ceiling.",
        "priority: 80",
    ),
    "JobFile.tenant": (
        "The tenant whose share the job counts towards, that of [your token](access.md#tenants); where it is "
        "for several, one of them: `a-z`, `0-9` and `-`, at most 63.",
        "tenant: vision",
    ),
    "JobFile.duration": (
        "How long the job is expected to run, 3650 days at most. Start times are estimated from it; it ends nothing.",
        "duration: 45m",
    ),
    "JobFile.deadline": (
        "[By when the job is to have ended](deadlines.md): a duration after submission, or a time.",
        "deadline: 2h",
    ),
    "JobFile.preemption": (
        "What becomes of the job if [a more urgent one takes its place](#making-room).",
        "preemption: suspend",
    ),
    "JobFile.tasks": ("One or more groups of tasks; 512 tasks at most in all.", ""),
    "JobFile.flows": ("The directed flows between tasks. Left out: the tasks have no reserved bandwidth.", ""),
    "JobFile.restart": ("What happens when a worker fails.", ""),
    "JobFile.regions": (
        "[Other regions](regions.md#letting-a-job-leave-its-home) where it may run; `any`: all.",
        "regions: [any]",
    ),
    "JobFile.disconnect": (
        "[When a node is cut off](#disconnect): `stop` its workers at the end of the lease, a duration later, 30 days "
        "at most, or `keep` them going for as long as it takes.",
        "disconnect: stop",
    ),
    "TaskGroup.name": ("Tasks are called `<name>-0`, `<name>-1`, ...; so are their hosts.", "name: worker"),
    "TaskGroup.replicas": ("How many tasks the group has. Ranks count through all groups in order.", "replicas: 5"),
    "TaskGroup.image": ("For the `docker` runtime; the `process` runtime ignores it.", "image: ces-worker-train"),
    "TaskGroup.command": (
        "Program and arguments. Left out with an image: the image's own command.",
        "command: [python, -m, ces_workloads.train, --algorithm, ring]",
    ),
    "TaskGroup.script": (
        "Instead of `command`: a Python program by its absolute path on the node or in the image.",
        "script: /opt/programs/train.py",
    ),
    "TaskGroup.env": ("Further environment variables. Those that CES sets win.", "env: {OMP_NUM_THREADS: '1'}"),
    "TaskGroup.secrets": (
        "[Secrets](secrets.md) of the job's tenant, each as a file of this name for each task of the group.",
        "secrets: {hub-token: {from: hub}}",
    ),
    "Secret.stored": (
        "The name by which [`ces secret create`](secrets.md) has stored it.",
        "from: hub",
    ),
    "TaskGroup.resources": ("What each task of the group holds, and is limited to.", ""),
    "TaskGroup.constraints": ("Which nodes a task may run on.", ""),
    "Resources.cpu": ("Cores, or thousandths of a core.", "cpu: 500m"),
    "Resources.memory": ("Memory.", "memory: 256Mi"),
    "Resources.gpu": (
        "Whole GPUs, or [a share of one](gpus.md#a-share-of-a-card).",
        "gpu: 500m",
    ),
    "Constraints.arch": ("The node's architecture.", "arch: arm64"),
    "Constraints.labels": ("Labels that the node must all have.", "labels: {site: roof}"),
    "Constraints.gpu_model": (
        "Models of GPU cards, by a word of their name.",
        "gpu_model: [T4, P100]",
    ),
    "Flows.topology": ("Which tasks send to which; see [topologies](#topologies).", "topology: ring"),
    "Flows.direction": ("Of a ring: `forward` is i to i+1, `reverse` is i to i-1.", "direction: reverse"),
    "Flows.bandwidth": ("Range of every flow; not with `edges`.", "bandwidth: {min: 10Mbit, max: 50Mbit}"),
    "Flows.mode": (
        "Whether what a flow was given is its cap (`strict`), or it may also borrow what is idle up to its `max`, and"
        " gives that back at once (`elastic`).",
        "mode: elastic",
    ),
    "Flows.edges": ("The flows one by one; only with `topology: edges`.", ""),
    "Edge.src": ("The sending task.", "src: worker-0"),
    "Edge.dst": ("The receiving task. At most one flow per ordered pair.", "dst: worker-1"),
    "Edge.bandwidth": ("Its range.", "bandwidth: {min: 5Mbit, max: 20Mbit}"),
    "Flows.inputs": ("Data that lies on nodes, for tasks to read; with any topology.", ""),
    "Input.node": ("The node whose data it is; it must have joined.", "node: edge-1"),
    "Input.dst": ("The task that reads it. At most one input per node and task.", "dst: worker-0"),
    "Input.bandwidth": ("Range of the flow from the node to the task.", "bandwidth: {min: 5Mbit, max: 50Mbit}"),
    "Input.datasets": ("What is read; left out, all that the node offers.", "datasets: [mnist]"),
    "Range.min": ("Guaranteed; the job waits until there is room for it.", "min: 10Mbit"),
    "Range.max": ("Never exceeded. What is given lies in between.", "max: 50Mbit"),
    "JobFile.elastic": ("The job has no fixed size: [CES decides it](malleable.md), and changes it.", ""),
    "Elastic.group": ("The group of tasks whose number is decided; leave out its `replicas`.", "group: worker"),
    "Elastic.workers": ("All sizes in a range; or give `sizes`.", "workers: {min: 1, max: 8}"),
    "Elastic.sizes": ("The sizes that are allowed, rising; or give `workers`.", "sizes: [1, 2, 4, 8]"),
    "Elastic.cpu": (
        "[What each worker has](malleable.md#cpu-in-place), changed while it runs.",
        "cpu: {min: 250m, max: 2}",
    ),
    "Elastic.grace": (
        "From SIGTERM to SIGKILL: time for a last checkpoint, a minute at most.",
        "grace: 30s",
    ),
    "Elastic.speed": ("How fast the job is, and how much it has to do.", ""),
    "Speed.unit": ("What the program counts as `step` in its [lines of progress](malleable.md#speed).", "unit: images"),
    "Speed.total": (
        "How many of them the job has to do in all; left out, nobody knows how long it runs.",
        "total: 40000",
    ),
    "Speed.hint": ("Units a second at some of its sizes, until enough was measured.", "hint: {1: 3.6, 2: 5.7, 4: 8.5}"),
    "Workers.min": ("The job waits until there is room for this many.", "min: 2"),
    "Workers.max": ("It never has more.", "max: 8"),
    "Restart.policy": ("Whether a failed worker is started again.", "policy: never"),
    "Restart.max": ("How often in a job's life, all workers together.", "max: 3"),
    "JobFile.kind": ("Whether the file is what it says is [checked](#what-to-write).", "kind: compute"),
    "JobFile.users": ("Whose requests it serves.", ""),
    "JobFile.requests": ("Its classes of requests.", ""),
    "JobFile.objective": (
        "What counts when a place is chosen; the sum is 1. Left out: balance and bandwidth, half each.",
        "objective: {balance: 0.25, bandwidth: 0.25, time: 0.5}",
    ),
    "JobFile.adjust": (
        "CES changes the application [by itself](running-applications.md#by-itself), and may disturb it so much; goes "
        "with `restart: {scope: task}`.",
        "adjust: {budget: 600}",
    ),
    "SelfAdjustment.budget": ("Requests an hour that may fall into moves; left out, any number.", "budget: 600"),
    "SelfAdjustment.reserve": ("Of the budget, what only a broken limit may use.", "reserve: 300"),
    "SelfAdjustment.cooldown": ("After a move, how long only a broken limit justifies another.", "cooldown: 2m"),
    "SelfAdjustment.least_gain": ("What a change must be worth, of the objective, its moves paid.", "least_gain: 0.01"),
    "TaskGroup.work": ("What a request costs each task of the group.", "work: {per_request: 35ru, class: matrix}"),
    "Constraints.user": ("Runs at the access node of this user.", "user: cam"),
    "Edge.message": ("Bytes that a request sends.", "message: 20k"),
    "Work.per_request": ("On one thread of the reference core.", "per_request: 35ru"),
    "Work.work_class": (
        "Which of a node's measured speeds counts; left out, each node counts as the reference core.",
        "class: matrix",
    ),
    "Work.threads": ("More cores do not help; left out, all that it has do.", "threads: 1"),
    "Work.longest": ("The longest that a request may take in the task.", "longest: 20ms"),
    "User.name": ("What chains and constraints name; no group of tasks has the name.", "name: cam"),
    "User.at": ("Where it is.", ""),
    "User.access": ("The way to its access node; left out, it takes no time.", ""),
    "Location.node": ("At this node; or give `lat` and `lon`.", "node: roof1"),
    "Location.lat": ("Degrees north (WGS 84).", "lat: 51.0504"),
    "Location.lon": ("Degrees east.", "lon: 13.7373"),
    "Access.delay": ("One way.", "delay: 2ms"),
    "Access.bandwidth": (
        "By which the first and the last message take time; left out, they take none.",
        "bandwidth: 100Mbit",
    ),
    "Request.name": ("Names are used once.", "name: loop"),
    "Request.user": ("Whose requests these are; one task is at that user, and sends them.", "from: cam"),
    "Request.rate": ("Requests a second, on average.", "rate: 10"),
    "Request.chain": (
        "The tasks that one passes; with a user at the end, the answer goes there.",
        "chain: [detect, cam]",
    ),
    "Request.deadline": ("From the user and to the end of the chain.", "deadline: 60ms"),
    "Request.hard": ("A plan that misses the deadline is no plan.", "hard: true"),
    "Objective.balance": ("That nodes and links are loaded evenly.", "balance: 0.25"),
    "Objective.bandwidth": ("That flows get what they may have.", "bandwidth: 0.25"),
    "Objective.time": ("That requests are far below deadlines that are not hard.", "time: 0.5"),
    "Objective.energy": ("That little power is added.", "energy: 0.2"),
    "Restart.scope": ("`gang`: all workers of the job start again; `task`: only the failed one.", "scope: task"),
}

QUEUE_FIELDS = {
    "QueueFile.window": (
        "How many jobs may be tried in vain in one cycle; the next cycle goes on from there. A tenant "
        "with no running job always has its best job tried. `null`: no limit.",
        "window: 16",
    ),
    "QueueFile.weights": ("What the parts of a job's score count.", ""),
    "QueueFile.bound": ("How long a job may wait although it could run.", "bound: 8h"),
    "QueueFile.overdue": (
        "After this share of the bound a job is overdue: age alone counts, before all scores. `null`: none ever is.",
        "overdue: 0.5",
    ),
    "QueueFile.reservations": (
        "How many overdue jobs may have a reservation at one time, and how many that must begin now for a deadline.",
        "reservations: 4",
    ),
    "QueueFile.crowded": (
        "Where running and waiting jobs need more than this share of the nodes' CPU, memory or GPUs, plans leave "
        "capacity for later jobs, large ones above all, if the solver is `default`, `search-learned` or `search`; "
        "below it they balance the load. `null`: they always balance it.",
        "crowded: 0.8",
    ),
    "QueueFile.declined": (
        "A job goes on waiting, as long as others will end, rather than take a place whose bandwidth satisfaction is "
        "lower by this much than on an idle cluster. `null`: it takes any.",
        "declined: 0.2",
    ),
    "QueueFile.patience": ("How long a job may decline places in this way.", "patience: 10m"),
    "QueueFile.preemption": (
        "A job that has no place may [take that of running ones](#preemption) whose priority is lower by at least "
        "this much. `null`: never.",
        "preemption: 30",
    ),
    "QueueFile.waiting": (
        "How many jobs of one tenant may wait; further ones are refused (429) until some have started.",
        "waiting: 500",
    ),
    "QueueFile.tenants": (
        "Who may submit; jobs of other tenants are refused. Left out: anyone, with weight 1 and no quota.",
        "",
    ),
    "Weights.fit": ("For a job that takes half as much: share of what is free, times duration.", "fit: 1"),
    "Weights.priority": ("For priority 100 over priority 0.", "priority: 2"),
    "Weights.waiting": ("For a job that has waited until it is overdue over one that has just come.", "waiting: 1"),
    "Weights.share": ("For a tenant that has nothing over one that has its fair share.", "share: 0.5"),
    "TenantEntry.name": ("What jobs name as their `tenant`.", "name: vision"),
    "TenantEntry.weight": ("Its part of the cluster, relative to other tenants' weights; above 0.", "weight: 2"),
    "TenantEntry.waiting": ("How many of its jobs may wait, instead of the file's `waiting`.", "waiting: 2000"),
    "TenantEntry.guaranteed": (
        "What a tenant may use before its share counts: those who have less than this come first.",
        "guaranteed: {cpu: 0.25}",
    ),
    "TenantEntry.quota": ("What is never exceeded, even if capacity is idle.", "quota: {cpu: 0.5, bandwidth: 0.5}"),
    "ClusterShares.cpu": ("Share of all nodes' CPU, 0 to 1.", "cpu: 0.5"),
    "ClusterShares.memory": ("Share of all nodes' memory.", "memory: 0.5"),
    "ClusterShares.gpu": ("Share of all GPUs.", "gpu: 1"),
    "ClusterShares.bandwidth": ("Share of what all links carry together.", "bandwidth: 0.3"),
}
