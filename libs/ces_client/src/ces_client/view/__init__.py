"""Pure functions from the API's models to rich renderables: no request, no clock, no terminal."""

from ces_client.view.flows import job_flows
from ces_client.view.job import job_facts, job_line, job_live, job_news, plan_table, task_progress, worker_table
from ces_client.view.lists import job_table, link_table, node_detail, node_table, probe_table, queue_table
from ces_client.view.plan import committed_plan, flow_table, plan_answer
from ces_client.view.standing import reason_text, waiting_text

__all__ = [
    "committed_plan",
    "flow_table",
    "job_facts",
    "job_flows",
    "job_line",
    "job_live",
    "job_news",
    "job_table",
    "link_table",
    "node_detail",
    "node_table",
    "plan_answer",
    "plan_table",
    "probe_table",
    "queue_table",
    "reason_text",
    "task_progress",
    "waiting_text",
    "worker_table",
]
