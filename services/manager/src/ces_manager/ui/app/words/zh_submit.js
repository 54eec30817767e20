/** Chinese words of the page that submits jobs, by the English sentences that stand in the code. */

/** @type {Record<string, string>} */
export default {
  Submit: "提交",
  "Submit a job": "提交作业",
  "as {command} does": "等同于 {command}",
  "Your role may not submit jobs.": "您的角色不能提交作业。",

  // Writing
  Examples: "示例",
  "A ring of workers": "环形工作进程",
  "A single task": "单个任务",
  "A malleable job": "可伸缩作业",
  "or a file": "或选择文件",
  "{file} is too large for a job file.": "{file} 太大，不是作业文件。",
  "Replace the job file?": "替换作业文件？",
  "What stands there now is lost.": "现有内容将丢失。",
  Replace: "替换",
  "Job file, YAML or JSON": "作业文件（YAML 或 JSON）",
  "It is checked while you write, and kept in this tab only. A file can be dropped here.": "编写时即时检查，仅保存在此标签页中。可将文件拖放到此处。",
  "Submitting…": "正在提交…",
  "{job} is submitted": "{job} 已提交",
  "{job} was not submitted": "{job} 未提交",
  "the job": "作业",
  "line {n}": "第 {n} 行",

  // The dry run
  "What would happen now": "现在提交会怎样",
  "Write a job file, or begin with an example: where its tasks would go is shown here.": "编写作业文件，或从示例开始：此处显示其任务将放置在哪里。",
  "Checking…": "正在检查…",
  "The job file is refused.": "作业文件被拒绝。",
  "It could not be checked.": "无法检查。",
  "no place for {job}": "{job} 没有位置",
  "{job} has a place": "{job} 有位置",
  "{job} has a place and would start with {size} {group}": "{job} 有位置，将以 {size} 个 {group} 开始",
  "{job} has a place and would start with {size} {group} with {cpu} each": "{job} 有位置，将以 {size} 个 {group} 开始，每个 {cpu}",
  "it would be number {n} in the queue": "它将在队列中排第 {n} 位",
  " and start as soon as they have": "，待其让出后立即开始",
  "; its start cannot be predicted": "；无法预测开始时间",
  " and start as soon as it is its turn and there is free capacity": "，轮到它且有空闲容量时立即开始",
  " and start at about {time}": "，约 {time} 开始",
  ", after job {jobs}": "，在作业 {jobs} 之后",
  ", after jobs {jobs}": "，在作业 {jobs} 之后",
  "it is expected to have ended at about {time}": "预计约 {time} 结束",
  "decided by {solver} in {ms} ms, for version {version} of the cluster": "由 {solver} 在 {ms} 毫秒内决定，针对集群版本 {version}",
};
