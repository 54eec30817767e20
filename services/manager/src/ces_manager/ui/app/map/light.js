/** What stands out of the map: nodes, and the links of a path. Pure. */

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./paint.js").Light} Light */
/** @typedef {{path: string[], src: string, dst: string, rate?: number | null, shortfall?: {src: string, dst: string} | null}} Flow of the API's FlowRates what is drawn */

/** @param {{src: string, dst: string}} flow @returns {string} by which a flow of a job is named */
export const flowKey = ({ src, dst }) => `${src}>${dst}`;

/** Light a flow's path, hop by hop. @param {Graph} graph @param {Flow} flow @param {Light} light */
export function lightPath(graph, { path, shortfall }, { vertices, edges }) {
  path.forEach((name, index) => {
    const vertex = graph.vertexOf.get(name);
    if (vertex) vertices.add(vertex);
    const before = index > 0 && graph.vertexOf.get(path[index - 1]);
    const edge = vertex && before && graph.edges.get(`${before.key}>${vertex.key}`);
    const short = shortfall?.src === path[index - 1] && shortfall?.dst === name;
    if (edge) edges.set(edge, short || Boolean(edges.get(edge)));
  });
}
