/** Chinese words of applications' requests, by the English sentences that stand in the code. */

/** @type {Record<string, string>} */
export default {
  Requests: "请求",
  Part: "环节",
  Takes: "用时",
  When: "时段",
  access: "接入",
  hard: "硬性期限",
  "of user": "用户",
  "never ends": "永不结束",
  "nothing yet": "尚无",
  "{time} of {deadline}": "{time}，期限 {deadline}",
  "misses its deadline": "超出期限",
  "measured: {times}; {answers} answers, {late} late": "实测：{times}；{answers} 个应答，{late} 个迟到",
  "measured: {times}; {answers} answers, {late} late, {lost} requests without an answer":
    "实测：{times}；{answers} 个应答，{late} 个迟到，{lost} 个请求无应答",
  "measured: nothing reported yet": "实测：尚无报告",
};
