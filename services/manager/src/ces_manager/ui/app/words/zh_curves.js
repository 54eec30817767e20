/** Chinese words of curves, by the English sentences that stand in the code. */

/** @type {Record<string, string>} */
export default {
  "Training curves": "训练曲线",
  mean: "平均",
  lowest: "最低",
  highest: "最高",
  "{field} of {workers}": "{workers}的 {field}",
  "{n} of {m} workers, and the mean of all": "{m} 个工作进程中的 {n} 个，以及全部的平均",
  "{label}: {name} went from {from} at {begin} to {to} at {end}": "{label}：{name}从 {begin} 的 {from} 变为 {end} 的 {to}",
  "No worker has printed numbers of its progress since the manager started.": "自管理服务启动以来，还没有工作进程输出过进度数值。",
  "No curves are kept of it: it printed no numbers, or more than an hour ago, or before the manager started.":
    "没有保留曲线：它没有输出数值，或已超过一小时，或输出在管理服务启动之前。",
  "{n} more curves": "另外 {n} 条曲线",
  "{n} workers": "{n} 个工作进程",
  Fewer: "收起",

  "The last hour": "最近一小时",
  "CPU in the last hour": "最近一小时的 CPU",
  "Memory in the last hour": "最近一小时的内存",
  "What the link carried in the last hour": "链路最近一小时承载的流量",
  used: "已用",
  offered: "提供",
  configured: "配置值",
  measured: "实测值",
  "reserved now": "当前预留",
  "(above the picture)": "（高于图示范围）",
  "Nothing is known yet: the manager keeps means of twenty seconds in memory, since it started or last heard the node.":
    "暂无数据：管理服务仅在内存中保留每二十秒的平均值，从启动或收到该节点消息时开始。",

  "{label}, as a table": "{label}（表格）",
  "The picture cannot be drawn; its numbers are in the table.": "无法绘制图形；数值见表格。",
};
