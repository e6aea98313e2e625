// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/config_target.h"

#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include "gateway/process/runtime_dir.h"
#include "gateway/service/state_messages.h"

namespace rocegw::daemon {
namespace {

// Returns the kernel's estimate (proc(5), MemAvailable); unlimited if unknown.
uint64_t AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    unsigned long long kilobytes = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kilobytes) == 1)
      return uint64_t{kilobytes} * 1024;
  }
  return UINT64_MAX;
}

session::SlotRights RightsOf(const tenant::PoolSettings& settings) {
  session::SlotRights rights;
  rights.mode = settings.socket_mode;
  if (auto owner = process::FindOwner(settings.socket_owner); owner.ok()) {
    rights.uid = owner->uid;
    rights.gid = owner->gid;
  }
  return rights;
}

// Returns the remedy for a socket that the system refused.
const char* RemedyOf(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return "the gateway must be able to write to its runtime_dir, and for sockets of other "
             "owners "
             "it needs CAP_CHOWN, CAP_DAC_OVERRIDE and CAP_FOWNER";
    case ENOSPC:
    case EDQUOT:
      return "make room, also for files, where its runtime_dir is";
    case ENOBUFS:
      return "give pools fewer slots (spec.slots), or place some of them on other gateways only";
    case EMFILE:
    case ENFILE:
      return "let the gateway have more open files (LimitNOFILE)";
    case EROFS:
      return "its runtime_dir must be on a file system that can be written to";
    default:
      return "see what else is at that path";
  }
}

}  // namespace

void ConfigTarget::SetGateway(const apply::GatewaySettings& settings,
                              const tenant::Amounts& capacity) {
  sessions_.SetCapacity(capacity);
  session::DrainOrder order;
  order.drain = settings.admin_state == types::v1::DRAINING;
  order.deadline = settings.drain_deadline;
  order.on_deadline = settings.on_deadline == types::v1::ABORT ? session::OnDeadline::kAbort
                      : settings.on_deadline == types::v1::DISCONNECT
                          ? session::OnDeadline::kDisconnect
                          : session::OnDeadline::kKeep;
  sessions_.OrderDrain(order);
}

void ConfigTarget::SetTenant(const tenant::TenantSettings& settings) {
  sessions_.SetTenant(settings);
}

void ConfigTarget::RemoveTenant(const std::string& name) { sessions_.RemoveTenant(name); }

// Memory of a worker cannot be swapped out, so a reserve beyond the available memory is refused.
std::optional<apply::Wrong> ConfigTarget::CheckReserve(const tenant::PoolSettings& settings) {
  constexpr uint64_t kHeap = session::ReadyReserve::kHeapOfQp + session::ReadyReserve::kHeapOfCmId;
  const uint64_t wanted =
      tenant::ReserveBytes(settings.ready_qps) + uint64_t{settings.ready_qps} * kHeap;
  uint64_t has = 0;
  session::Services& services = sessions_.services();
  if (const tenant::Pool* const pool = services.pools.FindPool(settings.name)) {
    if (const auto reserve = sessions_.reserves().Of(*pool))
      has = reserve->bytes() + reserve->heap();
  }
  const uint64_t available = AvailableMemory();
  if (wanted <= has || wanted - has <= available / 2) return std::nullopt;
  return apply::Wrong{apply::kNoCapacity, "spec.ready_qps: " + std::to_string(settings.ready_qps) +
                                              " ready queue pairs take " + std::to_string(wanted) +
                                              " bytes of memory; this host has " +
                                              std::to_string(available) +
                                              " left, half of which a reserve may take"};
}

std::optional<apply::Wrong> ConfigTarget::CheckPool(const tenant::PoolSettings& settings) {
  if (auto owner = process::FindOwner(settings.socket_owner); !owner.ok())
    return apply::Wrong{apply::kInvalid, "spec.attach.socket_" + owner.status().text()};
  const std::string clash = sessions_.slots().Clash(settings);
  if (!clash.empty()) {
    return apply::Wrong{apply::kInvalid,
                        "its uid begins as that of " + clash + ": they would share a folder"};
  }
  for (const wire::Gid& address : settings.addresses) {
    bool here = false;
    for (const session::Device& device : sessions_.services().devices)
      here |= std::find(device.gids.begin(), device.gids.end(), address) != device.gids.end();
    if (here) continue;
    return apply::Wrong{apply::kAddressNotHere, "spec.addresses: " + wire::AddressText(address) +
                                                    " is no address of this gateway"};
  }
  if (auto wrong = CheckReserve(settings)) return wrong;
  const size_t longest = (slots_dir_ + "/01234567/1024/attach.sock").size();
  if (settings.slots > 0 && longest >= sizeof(sockaddr_un{}.sun_path)) {
    return apply::Wrong{apply::kUnsupported,
                        "paths of sockets below " + slots_dir_ +
                            " would be too long; set a shorter runtime_dir at the gateway"};
  }
  return std::nullopt;
}

std::optional<apply::Wrong> ConfigTarget::MakeSockets(const tenant::PoolSettings& settings) {
  const Status made = sessions_.MakeSlots(settings, RightsOf(settings));
  if (made.ok()) return std::nullopt;
  sessions_.services().reports.Tell("SOCKET_FAILED", settings.name, "socket",
                                    settings.name + ": " + made.text());
  return apply::Wrong{apply::kSocketFailed, "attach sockets: " + made.text() + "; " +
                                                RemedyOf(made.error()) + "; it is tried again"};
}

void ConfigTarget::SetPool(const tenant::PoolSettings& settings) {
  sessions_.SetPool(settings, RightsOf(settings));
}

void ConfigTarget::RemovePool(const std::string& name) { sessions_.RemovePool(name); }

}  // namespace rocegw::daemon
