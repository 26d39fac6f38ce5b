"""Compiles the main programs for a chip that is not there; started by `benchmarks.compiled`.

JAX is told that it has a CPU, and asks the compiler of the chip alone. Private names of JAX, which the plugin of CUDA
needs, are here and nowhere else. Rows go to standard output as they come, one line of JSON each, so that those before
a compiler's crash are kept.
"""

import json
import re
import signal
import sys
import time
import traceback
from typing import Any

H100 = """
gpu_device_info {
  core_count: 132 fpus_per_core: 128 threads_per_warp: 32 threads_per_block_limit: 1024 threads_per_core_limit: 2048
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84942979072
  cuda_compute_capability { major: 9 }
}
platform_name: "CUDA" dnn_version_info { major: 9 minor: 10 patch: 0 } device_description_str: "NVIDIA H100 80GB HBM3"
"""  # as in XLA's own gpu/target_config/specs


def devices_of(platform: str, topology: str, number: int) -> Any:
    """The first of the chips that a topology has, (number,)."""
    import numpy as np
    from jax.experimental import topologies

    if platform == "gpu":
        from jax._src import xla_bridge

        xla_bridge._discover_and_register_pjrt_plugins()
        found = topologies.get_topology_desc(platform="cuda", topology_name="", topology=topology, target_config=H100)
    else:
        found = topologies.get_topology_desc(platform="tpu", topology_name=topology)
    if len(found.devices) < number:
        raise ValueError(f"{topology} has {len(found.devices)} devices, expected {number}")
    return np.array(found.devices[:number])


def compiled(program: Any, device: Any, platform: str) -> dict[str, Any]:
    """The figures of one program on one device."""
    import dataclasses

    import jax

    from benchmarks import compiled_text, flops
    from benchmarks.programs import nbytes
    from irtjax.kernels.formulation import formulated_for

    with formulated_for(platform), jax.enable_x64(program.products == "float64"):
        traced = program.traced(device)
        work = flops.work_of(traced.jaxpr.jaxpr)
        began = time.perf_counter()
        executable = traced.lower().compile()
    seconds = time.perf_counter() - began
    memory, analysis = executable.memory_analysis(), executable.cost_analysis() or {}
    cost = compiled_text.cost_of(executable.as_text())
    loop = cost.busiest_loop()
    figures = {field.name: getattr(cost, field.name) for field in dataclasses.fields(cost) if field.name != "loops"}
    least = program.least_bytes
    return {
        **figures,
        "turn": program.turn if cost.unknown_loops else "",
        "loop_turns": loop.turns,
        "kernels_per_turn": loop.kernels,
        "argument_bytes": memory.argument_size_in_bytes,
        "output_bytes": memory.output_size_in_bytes,
        "materialised_bytes": memory.temp_size_in_bytes,
        "alias_bytes": memory.alias_size_in_bytes,
        "least_bytes": memory.argument_size_in_bytes + memory.output_size_in_bytes if least is None else least,
        "given_bytes": nbytes(program.arguments),
        **{f"work_{field}": getattr(work, field) for field in ("products", "elementwise", "transcendental")},
        "optimal_seconds_of_one_turn": analysis.get("optimal_seconds"),
        "compilation_seconds": seconds,
    }


def main() -> None:
    """Compiles the programs that the settings name, in their order."""
    with open(sys.argv[1]) as file:
        settings = json.load(file)
    import jax

    from benchmarks.programs.true_sizes import of_one_device, of_several_devices
    from irtjax.kernels.formulation import formulated_for

    def tell(**row: Any) -> None:
        print("ROW " + json.dumps(row), flush=True)

    devices = devices_of(settings["platform"], settings["topology"], settings["number"])
    mesh = jax.sharding.Mesh(devices, ("network",), axis_types=(jax.sharding.AxisType.Auto,))
    made = of_one_device(mesh) if devices.size == 1 else of_several_devices(devices, mesh)
    wanted = settings["names"]
    names = [name for name in made if (re.search(settings["pattern"], name) if wanted is None else name in wanted)]
    tell(names=names)
    for name in names:
        tell(begins=name)
        signal.alarm(settings["seconds"])  # ends the process, wherever it is: a compiler hears nothing else
        try:
            with formulated_for(settings["platform"]):  # which decides blocks that are arguments, too
                program = made[name]()
            row = {"products": program.products, **compiled(program, devices[0], settings["platform"])}
        except Exception as error:
            traceback.print_exc()
            row = {"error": (str(error).strip().splitlines() or [type(error).__name__])[0]}
        signal.alarm(0)
        tell(program=name, **row)


if __name__ == "__main__":
    main()
