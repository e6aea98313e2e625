// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/remote_session.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/far/program/stop_while_opening.h"
#include "gateway/far/session/naming/donor_name.h"

namespace rocegw::far {
namespace {

// Registered memory for data on its way between the kernel and the donors.
constexpr uint64_t kPoolBytes = 16 << 20;

class SessionSpace final : public Space {
 public:
  explicit SessionSpace(Dispatcher& dispatcher) : dispatcher_(dispatcher) {}

  int Submit(Direction direction, uint64_t offset, uint8_t* buffer, uint64_t length, Done done,
             void* argument) override {
    return dispatcher_.Submit(direction, offset, buffer, length, done, argument);
  }
  uint8_t* Allocate(uint64_t bytes) override {
    return static_cast<uint8_t*>(dispatcher_.Allocate(bytes));
  }
  void Free(uint8_t* memory) override { dispatcher_.Free(memory); }
  void Flush(Done done, void* argument) override { dispatcher_.Flush(done, argument); }

 private:
  Dispatcher& dispatcher_;
};

// Names the donors that the fleet chose, as a command line would.
void NameDonors(Session& session, SessionArguments& arguments) {
  for (const Settings::Donor& donor : session.Donors()) {
    const bool has_colon = donor.host.find(':') != std::string::npos;
    arguments.donors.push_back((has_colon ? "[" + donor.host + "]" : donor.host) + ":" +
                               donor.port);
    spdlog::info("donor {} at {}, failure domain {}", donor.name, arguments.donors.back(),
                 donor.failure_domain);
  }
}

}  // namespace

StatusOr<std::unique_ptr<Session>> OpenSession(SessionArguments& arguments, int signals,
                                               KeptSpace kept) {
  const bool fleet = !arguments.donors_from.empty();
  if (arguments.donors.empty() && !fleet)
    return Status(EINVAL, "--donor HOST or --donors fleet is needed");
  const auto donors = DonorList::Read(arguments.donors);
  if (!donors.ok()) return donors.status();
  rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  donors.value().NameIn(options);
  if (fleet) options.donors_dir = arguments.donors_dir.c_str();
  options.size = arguments.size;
  options.replicas = arguments.replicas;
  options.tenant = arguments.tenant.c_str();
  options.slab_bytes = arguments.slab_bytes;
  options.timeout_ms = arguments.timeout_ms;
  options.pool_bytes = kPoolBytes;
  options.most_queued_bytes = 2 * kMostInFlight;
  if (!arguments.disk_copy.empty()) options.disk_copy = arguments.disk_copy.c_str();
  auto settings = CheckOptions(options, sizeof options);
  if (!settings.ok()) return settings.status();
  // Unless names are kept, only this process knows where in the space files and swap lie.
  settings.value().disk_use = arguments.keep ? CopyUse::kContinue : CopyUse::kTemporary;
  settings.value().save_placement = std::move(kept.save);
  settings.value().kept = std::move(kept.placement);
  settings.value().kept_data = std::move(kept.data);
  const StopWhileOpening stop(signals);
  settings.value().cancel_fd = stop.fd();
  auto session = Session::Open(settings.value());
  if (stop.stopped()) return Status(ECANCELED, "stopped while the session was opened");
  if (session.ok() && fleet) NameDonors(*session.value(), arguments);
  return session;
}

std::unique_ptr<Space> MakeSpace(Session& session) {
  return std::make_unique<SessionSpace>(session.dispatcher());
}

}  // namespace rocegw::far
