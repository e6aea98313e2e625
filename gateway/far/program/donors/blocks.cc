// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/donors/blocks.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <utility>
#include <vector>

#include "gateway/base/errno_status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/far/fleet/announcer.h"
#include "gateway/far/program/donors/serve_donor.h"
#include "gateway/far/shared_pool/block_donor.h"
#include "gateway/far/shared_pool/block_donor_metrics.h"
#include "gateway/process/exit_code.h"
#include "gateway/process/http/metric_families.h"
#include "gateway/process/sd_notify.h"
#include "gateway/process/startup.h"

namespace rocegw::far {
namespace {

constexpr size_t kFewestSecretBytes = 16;
constexpr size_t kMostSecretBytes = 64;

// The file's content without the line end.
StatusOr<std::vector<uint8_t>> ReadSecret(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!file.valid() || fstat(file.get(), &about) != 0) return ErrnoStatus("--secret " + path);
  if ((about.st_mode & S_IRWXO) != 0) {
    return Status{EPERM, "--secret " + path + ": other users may read it (chmod o=)"};
  }
  std::vector<uint8_t> secret(kMostSecretBytes + 2);
  const ssize_t got = read(file.get(), secret.data(), secret.size());
  if (got < 0) return ErrnoStatus("--secret " + path);
  secret.resize(static_cast<size_t>(got));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.size() < kFewestSecretBytes || secret.size() > kMostSecretBytes) {
    return Status{EINVAL, "--secret " + path + ": a secret has 16 to 64 bytes"};
  }
  return secret;
}

// Returns the memory that the orders allow the tenant's table.
uint64_t AllowedBy(const DonorOrders& orders, const BlocksArguments& arguments) {
  if (orders.draining) return 0;
  const auto quota = orders.quotas.find(arguments.tenant);
  if (quota != orders.quotas.end()) return std::min(quota->second, arguments.bytes);
  return std::min(orders.tenant_bytes.value_or(arguments.bytes), arguments.bytes);
}

// `draining` keeps what the orders say. All arguments outlive the announcer.
Announcer::Calls CallsOf(BlockDonor& donor, const BlocksArguments& arguments,
                         std::atomic<bool>& draining) {
  Announcer::Calls calls;
  calls.state = [&donor, &arguments, &draining, address = donor.address(), port = donor.port()] {
    const BlockDonorCounts counts = donor.counts();
    Announcement announcement;
    announcement.address = address;
    announcement.port = port;
    announcement.donated_bytes = counts.donated_bytes;
    announcement.leased_bytes = counts.open_bytes;
    announcement.leases = counts.open_bytes != 0 ? 1 : 0;
    announcement.sessions = counts.connections;
    if (counts.open_bytes != 0) announcement.tenants[arguments.tenant] = counts.open_bytes;
    announcement.draining = draining || counts.closing;
    announcement.version = arguments.version;
    announcement.pool = arguments.pool;
    announcement.block_bytes = arguments.block_bytes;
    return announcement;
  };
  calls.follow = [&donor, &arguments, &draining](const DonorOrders& orders) {
    draining = orders.draining;
    donor.Allow(AllowedBy(orders, arguments));
  };
  return calls;
}

}  // namespace

int ServeBlocks(const BlocksArguments& arguments) {
  process::RaiseDescriptorLimit();
  const process::ServiceManager manager = process::ServiceManager::FromEnvironment();
  auto signals = process::BlockSignals();
  if (!signals.ok()) {
    spdlog::error(signals.status().text());
    return process::kEnvironment;
  }
  auto secret = ReadSecret(arguments.secret);
  if (!secret.ok()) {
    spdlog::error(secret.status().text());
    return process::kUsage;
  }
  BlockDonor donor({arguments.bytes, arguments.block_bytes, std::move(secret.value())});
  if (const Status status = donor.Listen(arguments.address, arguments.port); !status.ok()) {
    spdlog::error(status.text());
    return status.error() == EINVAL ? process::kUsage : process::kEnvironment;
  }
  const BlockDonorMetrics metrics(donor, process::NowNanoseconds());
  std::atomic<bool> draining{false};
  Announcer announcer;
  std::function<Status()> announce;
  if (!arguments.announce.empty()) {
    if (!IsDonorName(arguments.pool)) {
      spdlog::error("--pool '{}': 1 to 30 of a-z, 0-9 and '-'", arguments.pool);
      return process::kUsage;
    }
    announce = [&] {
      return announcer.Start(arguments.announce, arguments.name,
                             CallsOf(donor, arguments, draining));
    };
  }
  const DonorService service{.metrics = &metrics,
                             .metrics_address = arguments.metrics,
                             .announce = std::move(announce),
                             .summary = "serves " + std::to_string(donor.counts().blocks) +
                                        " blocks of " + std::to_string(arguments.block_bytes) +
                                        " bytes at port " + arguments.port,
                             .run = [&donor] { return donor.Run(); },
                             .stop = [&donor] { donor.Stop(); },
                             .withdraw = [&announcer] { announcer.Stop(); },
                             .stopping = "ending the pool"};
  return ServeDonor(manager, signals->get(), service);
}

}  // namespace rocegw::far
