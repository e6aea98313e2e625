// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/settings.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "gateway/far/link/protocol.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kMostStaging = 64 << 20;
constexpr uint64_t kDiskQueue = 16 << 20;

Status Wrong(const char* what) { return {EINVAL, what}; }

}  // namespace

std::vector<uint32_t> Settings::Domains() const {
  std::vector<uint32_t> domains;
  for (uint32_t donor = 0; donor < donors.size(); donor++) {
    const std::string& name = donors[donor].failure_domain;
    uint32_t domain = 0;
    while (domain < donor && (name.empty() || donors[domain].failure_domain != name)) domain++;
    domains.push_back(domain);
  }
  return domains;
}

size_t Settings::MostDonors() const {
  return donors_dir.empty() ? donors.size() : std::max(donors.size(), kMostFleetDonors);
}

std::chrono::milliseconds Settings::LongestPlacing() const {
  // Some devices pin and zero what they register.
  const uint64_t gibibytes = (slabs * merge.slab_bytes * replicas >> 30) + 1;
  return std::chrono::milliseconds(connect_timeout_ms) * (donors.size() + 1) +
         std::chrono::seconds(gibibytes);
}

uint64_t Settings::StagingBytes() const {
  const uint64_t wanted = window_bytes == 0 ? kMostStaging : std::min(window_bytes, kMostStaging);
  return std::max(wanted, 2 * merge.most_bytes);
}

StatusOr<Settings> CheckOptions(const rocegw_memory_options& given, size_t size) {
  // Members behind this one were added later.
  if (size < offsetof(rocegw_memory_options, disk_copy)) return Wrong("options_size");
  rocegw_memory_options options{};
  std::memcpy(&options, &given, std::min(size, sizeof options));
  Settings settings;
  const bool fleet = options.donors_dir != nullptr && *options.donors_dir != 0;
  if (fleet) {
    if (options.donor_count != 0) return Wrong("donors and donors_dir: one of them");
    settings.donors_dir = options.donors_dir;
  } else if (options.donors == nullptr || options.donor_count == 0 ||
             options.donor_count > kMostDonors) {
    return Wrong("donor_count: 1 to 64");
  }
  for (size_t number = 0; number < options.donor_count; number++) {
    const rocegw_memory_donor& donor = options.donors[number];
    if (donor.host == nullptr || *donor.host == 0) return Wrong("a donor has no host");
    settings.donors.push_back(
        {donor.host, donor.port != nullptr ? donor.port : std::to_string(kDefaultPort)});
  }
  settings.tenant = options.tenant != nullptr ? options.tenant : "default";
  if (settings.tenant.empty() || settings.tenant.size() >= kTenantBytes) {
    return Wrong("tenant: 1 to 31 characters");
  }
  if (options.replicas == 0 || options.replicas > kMostReplicas ||
      (!fleet && options.replicas > options.donor_count)) {
    return Wrong("replicas: 1 to 4, at most one for each donor");
  }
  if (!std::has_single_bit(options.slab_bytes) || options.slab_bytes < (64 << 10) ||
      options.slab_bytes > (1 << 30)) {
    return Wrong("slab_bytes: a power of two, 64 KiB to 1 GiB");
  }
  if (options.size == 0 || options.size > (uint64_t{1} << 50)) return Wrong("size");
  if (options.most_merged_bytes < 4096 || options.most_merged_bytes > (16 << 20) ||
      options.most_merged_bytes % 4096 != 0) {
    return Wrong("most_merged_bytes: 4 KiB to 16 MiB, a multiple of 4 KiB");
  }
  if (options.most_chained == 0 || options.most_chained > 64) return Wrong("most_chained: 1 to 64");
  if (options.polling > ROCEGW_MEMORY_POLL_HYBRID) return Wrong("polling");
  if (options.poll_completions == 0 || options.poll_completions > 64) {
    return Wrong("poll_completions: 1 to 64");
  }
  if (options.timeout_ms == 0 || options.connect_timeout_ms == 0) return Wrong("a timeout is 0");
  settings.slabs = (options.size + options.slab_bytes - 1) / options.slab_bytes;
  settings.replicas = options.replicas;
  settings.merge.merge = (options.batching & ROCEGW_MEMORY_MERGE) != 0;
  settings.merge.slab_bytes = options.slab_bytes;
  settings.merge.most_bytes = std::min(options.most_merged_bytes, options.slab_bytes);
  if (options.window_bytes >= 4096) {
    // An operation larger than the window would be sent, but only alone.
    settings.merge.most_bytes =
        std::min(settings.merge.most_bytes, options.window_bytes / 4096 * 4096);
  }
  settings.chain = (options.batching & ROCEGW_MEMORY_CHAIN) != 0;
  settings.most_chained = options.most_chained;
  settings.window_bytes = options.window_bytes;
  settings.pool_bytes = options.pool_bytes;
  settings.copy_limit_bytes = options.copy_limit_bytes;
  settings.most_queued_bytes = std::max<uint64_t>(options.most_queued_bytes, 1);
  settings.polling = {static_cast<PollMode>(options.polling), options.poll_completions,
                      options.poll_retries};
  settings.pollers = options.pollers;
  settings.timeout_ms = options.timeout_ms;
  settings.connect_timeout_ms = options.connect_timeout_ms;
  settings.disk_path = options.disk_copy != nullptr ? options.disk_copy : "";
  settings.disk_use = options.disk_copy_keep != 0 ? CopyUse::kContinue : CopyUse::kStart;
  settings.disk_queue_bytes =
      std::max(options.disk_queue_bytes != 0 ? options.disk_queue_bytes : kDiskQueue,
               2 * settings.merge.most_bytes);
  return settings;
}

}  // namespace rocegw::far
