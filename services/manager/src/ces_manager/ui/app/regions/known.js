/** What the manager tells of regions and holds, asked for again and again. */
import { region } from "../live.js";
import { useAnswer } from "../parts/answers.js";

const EVERY_S = 4; // regions tell each other every two seconds

/** @returns {{regions: any[] | null, holds: any, problems: any[], again: () => void}} nothing where this is no region */
export function useRegions() {
  const is = Boolean(region.value);
  const told = useAnswer(is ? "/v1/regions" : null, { every: EVERY_S });
  const held = useAnswer(is ? "/v1/regions/holds" : null, { every: EVERY_S });
  const again = () => {
    told.again();
    held.again();
  };
  return {
    regions: told.data?.items ?? null,
    holds: held.data,
    problems: [told.problem, held.problem].filter(Boolean),
    again,
  };
}
