/** Chinese words of what would be changed of a running application, by the English sentences that stand in the code. */

/** @type {Record<string, string>} */
export default {
  "What would be changed now": "现在会作哪些调整",
  Look: "查看",
  "Tasks that would move": "会迁移的任务",
  To: "终点",
  "Stands still, s": "停顿（秒）",
  "Requests meanwhile": "期间的请求数",
  "It keeps its limits.": "各项限制均满足。",
  "A limit is broken:": "有限制未满足：",
  "Nothing would change.": "无需改动。",
  "{n} moves": "{n} 次迁移",
  "other rates and paths, which the service cannot set by itself: it reroutes for bandwidth, not for deadlines":
    "其他速率和路径，系统无法自行设置：它只为带宽改道，不为截止时间改道",
  "Worth it: {what}; objective {objective}, of which moves take {cost}": "值得：{what}；目标值 {objective}，其中迁移占 {cost}",
  "Worth it: {what}; objective {objective}, of which moves take {cost}: {gain} more than now":
    "值得：{what}；目标值 {objective}，其中迁移占 {cost}：比现在多 {gain}",
};
