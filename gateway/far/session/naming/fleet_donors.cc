// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/naming/fleet_donors.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gateway/far/fleet/ask_agent.h"

namespace rocegw::far {

StatusOr<std::vector<Settings::Donor>> FindFleetDonors(const Settings& settings, uint64_t bytes,
                                                       uint32_t replicas,
                                                       std::chrono::seconds longest,
                                                       int cancel_fd) {
  DonorQuestion question;
  question.tenant = settings.tenant;
  question.bytes = bytes;
  question.replicas = replicas;
  const auto found = AskAgent(settings.donors_dir, question, longest, cancel_fd);
  if (!found.ok()) return found.status();
  std::vector<Settings::Donor> donors;
  for (const NamedDonor& donor : found.value()) {
    donors.push_back({donor.address, std::to_string(donor.port), donor.failure_domain, donor.name});
  }
  return donors;
}

std::vector<Settings::Donor> NewDonors(const std::vector<Settings::Donor>& known,
                                       const std::vector<Settings::Donor>& found, size_t most) {
  std::vector<Settings::Donor> fresh;
  for (const Settings::Donor& donor : found) {
    const auto same = [&donor](const Settings::Donor& other) {
      return other.host == donor.host && other.port == donor.port;
    };
    if (fresh.size() < most && std::none_of(known.begin(), known.end(), same) &&
        std::none_of(fresh.begin(), fresh.end(), same)) {
      fresh.push_back(donor);
    }
  }
  return fresh;
}

}  // namespace rocegw::far
