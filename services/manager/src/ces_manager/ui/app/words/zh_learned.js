/** Chinese words of energy and availability, by the English sentences that stand in the code. */

/** @type {Record<string, string>} */
export default {
  Energy: "能耗",
  Power: "功率",
  "Power in the last hour": "最近一小时的功率",
  Availability: "可用性",
  "{joules} measured": "实测 {joules}",
  "{joules} modelled": "模型估算 {joules}",
  "{watts} now": "当前 {watts}",
  unknown: "未知",
  "none yet": "尚无",
  "at least {least} (95 % sure), mean {mean}, n = {n} minutes": "至少 {least}（95 % 置信度），均值 {mean}，n = {n} 分钟",
  "nothing learned yet": "尚未得出",
};
