#include "engines/ggml/backend_hook.h"

#include <cstring>
#include <dlfcn.h>
#include <vector>

namespace opledger::ggml {
namespace {

using ComputeFunction = decltype(ggml_backend_i::graph_compute);

struct Hooked {
  ggml_backend_t backend;
  ComputeFunction original;
};

// The hook is a C function pointer without room for a context, so this is process-wide.
std::vector<Hooked>& hooked() {
  static std::vector<Hooked> backends;
  return backends;
}

GraphHandler& handler() {
  static GraphHandler current;
  return current;
}

ggml_status hook(ggml_backend_t backend, ggml_cgraph* graph) {
  return handler() ? handler()(backend, graph) : execute(backend, graph);
}

ggml_backend_t hook_backend(ggml_backend_t backend) {
  if (backend == nullptr) return backend;
  hooked().push_back({backend, backend->iface.graph_compute});
  backend->iface.graph_compute = hook;
  return backend;
}

#if OPLEDGER_HAVE_DEVICES
struct Device {
  ggml_backend_dev_t device;
  decltype(ggml_backend_device_i::init_backend) original;
};

std::vector<Device>& devices() {
  static std::vector<Device> all;
  return all;
}

ggml_backend_t init_backend(ggml_backend_dev_t device, const char* parameters) {
  for (const Device& known : devices()) {
    if (known.device == device) return hook_backend(known.original(device, parameters));
  }
  return nullptr;
}
#endif

}  // namespace

void install_backend_hook() {
#if OPLEDGER_HAVE_LOAD_ALL
  ggml_backend_load_all();
#endif
#if OPLEDGER_HAVE_DEVICES
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    devices().push_back({device, device->iface.init_backend});
    device->iface.init_backend = init_backend;
  }
#endif
}

void set_graph_handler(GraphHandler new_handler) {
  handler() = std::move(new_handler);
}

void attach_backend_hook(bool attached) {
  for (Hooked& h : hooked()) h.backend->iface.graph_compute = attached ? hook : h.original;
}

ggml_status execute(ggml_backend_t backend, ggml_cgraph* graph) {
  for (const Hooked& h : hooked()) {
    if (h.backend != backend) continue;
    const ggml_status status = h.original(backend, graph);
    if (backend->iface.synchronize != nullptr) backend->iface.synchronize(backend);
    return status;
  }
  return GGML_STATUS_FAILED;
}

std::string non_cpu_backend() {
  for (const Hooked& h : hooked()) {
    const char* name = ggml_backend_name(h.backend);
    if (std::strcmp(name, "CPU") != 0) return name;
  }
  return {};
}

namespace detail {
/// For trees without devices: the engine makes its CPU backend through this exported function.
ggml_backend_t hook_cpu_backend() {
  using Init = ggml_backend_t (*)();
  static const auto original = reinterpret_cast<Init>(dlsym(RTLD_NEXT, "ggml_backend_cpu_init"));
  return original == nullptr ? nullptr : hook_backend(original());
}
}  // namespace detail

}  // namespace opledger::ggml

#if !OPLEDGER_HAVE_DEVICES
// Found before the library's own by the dynamic linker (the executable exports its symbols).
extern "C" ggml_backend_t ggml_backend_cpu_init(void) {
  return opledger::ggml::detail::hook_cpu_backend();
}
#endif
