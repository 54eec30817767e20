/** Chinese words of nodes' scores, by the English sentences that stand in the code. */

/** @type {Record<string, string>} */
export default {
  Scores: "评分",
  Level: "等级",
  "{level} of 10": "{level}（满分 10）",
  "not known": "未知",
  "measured {span} ago": "{span} 前测得",
  "In cores of the reference machine, by the word of its agent.": "以参考机器的核心数计，由其代理自行报告。",
  "Its agent has not measured: it has had no time yet, or measuring is off.": "其代理尚未测量：还没有空闲，或测量已关闭。",
  "Measure again": "重新测量",
  "What was measured": "测量结果",
  Threads: "线程",
  Spread: "离散度",
  Source: "来源",
  noisy: "有干扰",
  integers: "整数",
  floats: "浮点数",
  matrices: "矩阵",
  inference: "推理",
  disk: "磁盘",
  computing: "计算",
  "one core": "单核",
  storage: "存储",
  communication: "通信",
};
