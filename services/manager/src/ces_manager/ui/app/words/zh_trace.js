/** Chinese words of traces, by the English sentences that stand in the code. */

/** @type {Record<string, string>} */
export default {
  "Where its time went": "时间花在哪里",
  "As the services told, in trace {trace}.": "由各服务报告，跟踪 {trace}。",
  "From its events: this attempt is not traced.": "根据其事件：此次尝试未被跟踪。",
  "Nothing is kept of this attempt any more.": "此次尝试的记录已不再保留。",
  Attempt: "尝试",
  Step: "步骤",
  Service: "服务",
  From: "起点",
  Took: "用时",
  attempt: "尝试",
  network: "网络",
  "goes on": "进行中",
};
