"""The usage code of the seed as it stands there (SEED-2, Usage); the line of its import is the only one that is changed."""

# ruff: noqa: RUF059 - as it stands there
from interlock.client.kernel import SafetyKernel, Invariant, State, ActionSpec, Effect  # noqa: I001
import threading

# Create ONE kernel shared across all orchestrators
shared_kernel = SafetyKernel(
    budget=100.0,
    invariants=[
        Invariant(
            "global_resource_limit",
            lambda s: s.get("active_tasks", 0) <= 10,
            enforcement="blocking",
        )
    ],
    min_action_cost=1.0,
)


# Multiple orchestrators share it
def agent_worker(agent_id: str, shared_kernel: SafetyKernel, initial_state: State):
    action = ActionSpec(
        id=f"task_{agent_id}",
        name=f"Agent {agent_id} task",
        effects=(Effect("active_tasks", "increment", 1),),
        cost=10.0,
    )
    # evaluate_and_execute_atomic is thread-safe
    new_state, entry = shared_kernel.evaluate_and_execute_atomic(
        initial_state, action, reasoning_summary=f"Agent {agent_id} acting"
    )
    return new_state


state = State({"active_tasks": 0})
threads = [threading.Thread(target=agent_worker, args=(str(i), shared_kernel, state)) for i in range(5)]
for t in threads:
    t.start()
for t in threads:
    t.join()
