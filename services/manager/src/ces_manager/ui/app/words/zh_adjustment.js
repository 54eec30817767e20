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
  Moves: "迁移",
  "The latest moves of its tasks": "任务最近的迁移",
  "Worth it": "是否值得",
  "did not pay": "不值得",
  "has paid": "已值得",
  "pays in {span}": "{span}后值得",
  reserved: "已预留",
  carrying: "搬运状态",
  clearing: "清理中",
  returning: "返回中",
  done: "已到达",
  "Looked at by itself {span} ago: {why}": "{span}前自行查看：{why}",
  "{n} requests may fall into further moves this hour": "本小时内还可有 {n} 个请求受迁移影响",
  "{n} moves": "{n} 次迁移",
  "other rates and paths, which the service sets by itself where the job says adjust, and never when asked":
    "其他速率和路径，作业写明 adjust 时系统会自行设置，不按请求设置",
  "Worth it: {what}; objective {objective}, of which moves take {cost}": "值得：{what}；目标值 {objective}，其中迁移占 {cost}",
  "Worth it: {what}; objective {objective}, of which moves take {cost}: {gain} more than now":
    "值得：{what}；目标值 {objective}，其中迁移占 {cost}：比现在多 {gain}",
};
