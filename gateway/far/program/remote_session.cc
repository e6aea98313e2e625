// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/remote_session.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/far/fleet/ask_agent.h"
#include "gateway/far/session/donor_name.h"

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

// Asks the agent for donors. Returns the failure domain of each.
StatusOr<std::vector<std::string>> FindDonors(SessionArguments& arguments) {
  DonorQuestion question;
  question.tenant = arguments.tenant;
  const uint64_t slab = std::max<uint64_t>(arguments.slab_bytes, 1);
  question.bytes = (arguments.size + slab - 1) / slab * slab;
  question.replicas = arguments.replicas;
  const auto found = AskAgent(arguments.donors_dir, question);
  if (!found.ok()) return found.status();
  std::vector<std::string> domains;
  for (const NamedDonor& donor : found.value()) {
    const bool has_colon = donor.address.find(':') != std::string::npos;
    arguments.donors.push_back((has_colon ? "[" + donor.address + "]" : donor.address) + ":" +
                               std::to_string(donor.port));
    domains.push_back(donor.failure_domain);
    spdlog::info("donor {} at {}, failure domain {}", donor.name, arguments.donors.back(),
                 donor.failure_domain);
  }
  return domains;
}

}  // namespace

StatusOr<std::unique_ptr<Session>> OpenSession(SessionArguments& arguments) {
  std::vector<std::string> domains;
  if (!arguments.donors_from.empty()) {
    auto found = FindDonors(arguments);
    if (!found.ok()) return found.status();
    domains = std::move(found.value());
  }
  if (arguments.donors.empty()) return Status(EINVAL, "--donor HOST or --donors fleet is needed");
  const auto donors = DonorList::Read(arguments.donors);
  if (!donors.ok()) return donors.status();
  rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  donors.value().NameIn(options);
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
  // Only this process knows where in the space files and swap lie.
  settings.value().disk_use = CopyUse::kTemporary;
  for (size_t number = 0; number < domains.size(); number++) {
    settings.value().donors[number].failure_domain = domains[number];
  }
  return Session::Open(settings.value());
}

std::unique_ptr<Space> MakeSpace(Session& session) {
  return std::make_unique<SessionSpace>(session.dispatcher());
}

}  // namespace rocegw::far
