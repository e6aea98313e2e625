// SPDX-License-Identifier: Apache-2.0
// The calls of rocegw_memory_blocks.h.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "gateway/far/session/api/rocegw_memory_blocks.h"
#include "gateway/far/session/api/session_handle.h"
#include "gateway/far/session/block_pool.h"
#include "gateway/far/shared_pool/pool_finder.h"
#include "gateway/far/shared_pool/shared_pool.h"

using rocegw::Status;
using rocegw::StatusOr;
using rocegw::far::BlockPool;
using rocegw::far::CopyStatistics;
using rocegw::far::DonorQuestion;
using rocegw::far::Explain;
using rocegw::far::IsDonorName;
using rocegw::far::PathChoice;
using rocegw::far::PoolFinder;
using rocegw::far::SharedPool;
using rocegw::far::SharedPoolSettings;
using rocegw::far::ValuePool;

struct rocegw_memory_blocks {
  std::unique_ptr<ValuePool> pool;
  std::unique_ptr<PoolFinder> finder = nullptr;  // ends before the pool
};

namespace {

constexpr size_t kFewestSecretBytes = 16;
constexpr size_t kMostSecretBytes = 64;
constexpr uint32_t kMostRequests = 4096;
constexpr char kDonorsDir[] = "/run/rocegw-donors";

// Returns the options that a program of this version, or of an older one, has given.
rocegw_memory_blocks_options OptionsOf(const rocegw_memory_blocks_options& given, size_t size) {
  rocegw_memory_blocks_options options{};
  std::memcpy(&options, &given, std::min(size, sizeof options));
  return options;
}

// Returns nullptr when the program names the donors itself.
StatusOr<std::unique_ptr<PoolFinder>> FinderFor(const rocegw_memory_blocks_options& options) {
  if (options.pool == nullptr) return std::unique_ptr<PoolFinder>();
  if (options.donor_count != 0) return Status{EINVAL, "pool: not with donors"};
  if (!IsDonorName(options.pool)) return Status{EINVAL, "pool: 1 to 30 of a-z, 0-9 and '-'"};
  DonorQuestion question;
  question.tenant = options.tenant != nullptr ? options.tenant : "default";
  question.bytes = 1;
  question.replicas = options.replicas;
  question.donors = SharedPool::kMostDonors;
  question.pool = options.pool;
  return std::make_unique<PoolFinder>(
      options.donors_dir != nullptr ? options.donors_dir : kDonorsDir, std::move(question));
}

// Checks the options, of which the donors may be missing.
StatusOr<SharedPoolSettings> CheckOptions(const rocegw_memory_blocks_options& options) {
  const bool named = options.donors != nullptr && options.donor_count != 0;
  if ((!named && options.pool == nullptr) || options.donor_count > SharedPool::kMostDonors) {
    return Status{EINVAL, "donors: 1 to 64"};
  }
  if (options.secret == nullptr || options.secret_bytes < kFewestSecretBytes ||
      options.secret_bytes > kMostSecretBytes) {
    return Status{EINVAL, "secret: 16 to 64 bytes"};
  }
  if (options.replicas == 0 || options.replicas > SharedPool::kMostReplicas) {
    return Status{EINVAL, "replicas: 1 to 4"};
  }
  if (options.most_requests == 0 || options.most_requests > kMostRequests) {
    return Status{EINVAL, "most_requests: 1 to 4096"};
  }
  if (options.timeout_ms == 0 || options.connect_timeout_ms == 0) {
    return Status{EINVAL, "timeouts are not 0"};
  }
  SharedPoolSettings settings;
  for (size_t number = 0; number < options.donor_count; number++) {
    const rocegw_memory_donor& donor = options.donors[number];
    if (donor.host == nullptr) return Status{EINVAL, "donors: a host is missing"};
    settings.donors.push_back(
        {donor.host, donor.port != nullptr ? donor.port : std::to_string(SharedPool::kPort)});
  }
  const auto* const secret = static_cast<const uint8_t*>(options.secret);
  settings.secret.assign(secret, secret + options.secret_bytes);
  settings.replicas = options.replicas;
  settings.most_requests = options.most_requests;
  settings.timeout_ms = options.timeout_ms;
  settings.connect_timeout_ms = options.connect_timeout_ms;
  switch (options.path) {
    case ROCEGW_MEMORY_BLOCKS_ANY_PATH:
      settings.path = PathChoice::kAny;
      return settings;
    case ROCEGW_MEMORY_BLOCKS_ENDPOINTS:
      settings.path = PathChoice::kEndpoints;
      return settings;
    case ROCEGW_MEMORY_BLOCKS_QUEUE_PAIRS:
      settings.path = PathChoice::kQueuePairs;
      return settings;
  }
  return Status{EINVAL, "path: none of enum rocegw_memory_blocks_path"};
}

bool IsKey(const void* key, size_t size) {
  return key != nullptr && size != 0 && size <= ROCEGW_MEMORY_MOST_KEY_BYTES;
}

std::string_view Key(const void* key, size_t size) { return {static_cast<const char*>(key), size}; }

}  // namespace

int rocegw_memory_blocks_open(rocegw_memory_session* session, uint64_t offset, uint64_t size,
                              uint64_t block_bytes, rocegw_memory_blocks** blocks) {
  auto& dispatcher = session->session->dispatcher();
  if (block_bytes == 0 || block_bytes % 4096 != 0 || block_bytes > ROCEGW_MEMORY_MOST_BLOCK_BYTES ||
      offset % block_bytes != 0 || size < block_bytes || offset > dispatcher.size() ||
      size > dispatcher.size() - offset || size / block_bytes > UINT32_MAX) {
    return -EINVAL;
  }
  *blocks =
      new rocegw_memory_blocks{std::make_unique<BlockPool>(dispatcher, offset, size, block_bytes)};
  return 0;
}

int rocegw_memory_blocks_join(const rocegw_memory_blocks_options* options, size_t options_size,
                              rocegw_memory_blocks** blocks, char* why, size_t why_size) {
  const rocegw_memory_blocks_options given = OptionsOf(*options, options_size);
  auto settings = CheckOptions(given);
  if (!settings.ok()) return Explain(settings.status(), why, why_size);
  auto finder = FinderFor(given);
  if (!finder.ok()) return Explain(finder.status(), why, why_size);
  if (finder.value() != nullptr) {
    auto found = finder.value()->Find();
    if (!found.ok()) return Explain(found.status(), why, why_size);
    settings->donors = std::move(found.value());
    settings->donors_change = true;
  }
  auto opened = SharedPool::Open(std::move(settings.value()));
  if (!opened.ok()) return Explain(opened.status(), why, why_size);
  SharedPool& pool = *opened.value();
  *blocks = new rocegw_memory_blocks{std::move(opened.value()), std::move(finder.value())};
  if ((*blocks)->finder != nullptr) (*blocks)->finder->Start(pool);
  return 0;
}

uint64_t rocegw_memory_blocks_block_bytes(const rocegw_memory_blocks* blocks) {
  return blocks->pool->block_bytes();
}

void rocegw_memory_blocks_close(rocegw_memory_blocks* blocks) { delete blocks; }

int rocegw_memory_blocks_put(rocegw_memory_blocks* blocks, const void* key, size_t key_size,
                             const void* value, size_t length, rocegw_memory_blocks_done done,
                             void* argument) {
  if (!IsKey(key, key_size)) return -EINVAL;
  return blocks->pool->Put(Key(key, key_size), value, length, done, argument);
}

int rocegw_memory_blocks_get(rocegw_memory_blocks* blocks, const void* key, size_t key_size,
                             void* buffer, size_t size, rocegw_memory_blocks_done done,
                             void* argument) {
  if (!IsKey(key, key_size)) return -EINVAL;
  return blocks->pool->Get(Key(key, key_size), buffer, size, done, argument);
}

int64_t rocegw_memory_blocks_put_wait(rocegw_memory_blocks* blocks, const void* key,
                                      size_t key_size, const void* value, size_t length) {
  if (!IsKey(key, key_size)) return -EINVAL;
  return blocks->pool->PutAndWait(Key(key, key_size), value, length);
}

int64_t rocegw_memory_blocks_get_wait(rocegw_memory_blocks* blocks, const void* key,
                                      size_t key_size, void* buffer, size_t size) {
  if (!IsKey(key, key_size)) return -EINVAL;
  return blocks->pool->GetAndWait(Key(key, key_size), buffer, size);
}

int rocegw_memory_blocks_has(rocegw_memory_blocks* blocks, const void* key, size_t key_size) {
  return IsKey(key, key_size) && blocks->pool->Has(Key(key, key_size)) == 1 ? 1 : 0;
}

int rocegw_memory_blocks_remove(rocegw_memory_blocks* blocks, const void* key, size_t key_size) {
  if (!IsKey(key, key_size)) return -EINVAL;
  return blocks->pool->Remove(Key(key, key_size));
}

void rocegw_memory_blocks_get_statistics(rocegw_memory_blocks* blocks,
                                         rocegw_memory_blocks_statistics* statistics,
                                         size_t statistics_size) {
  CopyStatistics(blocks->pool->Statistics(), statistics, statistics_size);
}
