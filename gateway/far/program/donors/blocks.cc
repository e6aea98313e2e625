// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/donors/blocks.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "gateway/base/errno_status.h"
#include "gateway/base/unique_fd.h"
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
  const DonorService service{.metrics = &metrics,
                             .metrics_address = arguments.metrics,
                             .announce = {},
                             .summary = "serves " + std::to_string(donor.counts().blocks) +
                                        " blocks of " + std::to_string(arguments.block_bytes) +
                                        " bytes at port " + arguments.port,
                             .run = [&donor] { return donor.Run(); },
                             .stop = [&donor] { donor.Stop(); },
                             .withdraw = {},
                             .stopping = "ending the pool"};
  return ServeDonor(manager, signals->get(), service);
}

}  // namespace rocegw::far
