// SPDX-License-Identifier: Apache-2.0
// Entry points for the client library: one engine per process, created at the first attach, ended
// with the process. Settings come from the environment, as rocegw-run sets them.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gateway/abi/engine.h"
#include "gateway/inprocess/engine.h"
#include "gateway/wire/gid.h"

namespace rocegw::inprocess {
namespace {

// Limit for everything that Stop waits for, on a busy machine.
constexpr Duration kStopWithin = Seconds(3);

// Never destroyed: its threads may outlive static objects.
Engine* g_engine = nullptr;

bool IsSet(const char* name) {
  const char* const value = secure_getenv(name);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

void WriteLine(session::Severity, const std::string& line) {
  const std::string text = "rocegw[" + std::to_string(::getpid()) + "]: " + line + "\n";
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

void AtExit() { (void)g_engine->Stop(kStopWithin); }

StatusOr<UniqueFd> StartAndAttach() {
  if (g_engine == nullptr) {
    const char* const text = secure_getenv("ROCEGW_ADDRESS");
    std::optional<wire::Gid> address;
    if (text != nullptr && *text != '\0') {
      address = wire::ParseGid(text);
      if (!address)
        return Status(EINVAL, std::string("ROCEGW_ADDRESS: '") + text + "' is no IP address");
    }
    const bool talks = IsSet("ROCEGW_DEBUG");
    auto engine =
        std::make_unique<Engine>(Engine::ConfigFor({.address = address,
                                                    .run_in_poll = IsSet("ROCEGW_RUN_IN_POLL"),
                                                    .placement = IsSet("ROCEGW_PLACEMENT")}),
                                 talks ? session::Log(WriteLine) : session::Log(), talks);
    if (Status started = engine->Start(); !started.ok()) {
      if (address || started.error() != ENODEV) return started;
      return Status(ENODEV,
                    "there is no interface to choose by a default route; say which address of this "
                    "host it uses with rocegw-run --address IP (ROCEGW_ADDRESS)");
    }
    g_engine = engine.release();
    // Runs after exit handlers that the program registers later, and before earlier ones.
    std::atexit(AtExit);
  }
  return g_engine->Attach();
}

int Refuse(int error, const std::string& text, char* reason, size_t size) {
  if (size != 0) std::snprintf(reason, size, "%s", text.c_str());
  return -(error != 0 ? error : EIO);
}

}  // namespace
}  // namespace rocegw::inprocess

extern "C" [[gnu::visibility("default")]] int rocegw_engine_attach(char* reason, size_t size) {
  using rocegw::inprocess::Refuse;
  try {
    auto connected = rocegw::inprocess::StartAndAttach();
    if (!connected.ok())
      return Refuse(connected.status().error(), connected.status().text(), reason, size);
    return connected->Release();
  } catch (const std::exception& error) {
    return Refuse(ENOMEM, error.what(), reason, size);
  }
}

extern "C" [[gnu::visibility("default")]] void rocegw_engine_progress() {
  rocegw::inprocess::g_engine->Progress();
}
