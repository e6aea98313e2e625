// SPDX-License-Identifier: Apache-2.0
#include "controlplane/audit/sealer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "controlplane/model/stored.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::audit {
namespace {

constexpr size_t kPage = 1000;
// Keys of records follow the clocks of their writers, which may differ by this.
constexpr int64_t kSkewSeconds = 24 * 3600;
// Time for a store that delivers changes over the network.
constexpr std::chrono::milliseconds kPatience(200);

std::string SealKey(uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return std::string(kSealPrefix) + text;
}

}  // namespace

StatusOr<std::optional<store::Entry>> Sealer::Find(uint64_t number) {
  return store_.Get(SealKey(number));
}

// Seals are numbered without gaps, so binary search finds the last one.
StatusOr<Sealer::Newest> Sealer::FindNewest() {
  uint64_t absent = 0;  // lowest number without a seal; 0: unknown
  Newest newest;
  const auto look = [&](uint64_t number) -> Status {
    auto found = Find(number);
    if (!found.ok()) return found.status();
    if (!found->has_value()) {
      absent = number;
      return OkStatus();
    }
    newest.number = number;
    newest.mod_revision = (*found)->mod_revision;
    if (!newest.seal.ParseFromString((*found)->value))
      return {EUCLEAN, SealKey(number) + " is not a seal"};
    return OkStatus();
  };
  for (uint64_t number = 1; absent == 0; number *= 2) {
    if (Status status = look(number); !status.ok()) return status;
  }
  while (newest.number + 1 < absent) {
    const uint64_t middle = newest.number + (absent - newest.number) / 2;
    if (Status status = look(middle); !status.ok()) return status;
  }
  return newest;
}

Status Sealer::Begin() {
  auto newest = FindNewest();
  if (!newest.ok()) return newest.status();
  newest_ = std::move(*newest);
  unsealed_.clear();
  store::RangeRequest request{.range = store::KeyRange::Prefix(model::kAuditPrefix),
                              .limit = kPage};
  if (newest_.number != 0) {
    google::protobuf::Timestamp from = newest_.seal.time();
    from.set_seconds(std::max<int64_t>(0, from.seconds() - kSkewSeconds));
    request.range.begin = model::AuditKeyFrom(from);
  }
  for (;;) {
    auto page = store_.Range(request);
    if (!page.ok()) return page.status();
    request.revision = page->revision;
    for (const store::Entry& entry : page->entries) {
      if (entry.mod_revision > newest_.seal.revision()) unsealed_.push_back(DigestOf(entry));
    }
    if (!page->more) break;
    request.range = request.range.After(page->entries.back().key);
  }
  seen_ = request.revision;
  watch_ = std::make_unique<store::BlockingWatch>(
      store_, store::KeyRange::Prefix(model::kAuditPrefix), seen_ + 1);
  return OkStatus();
}

Status Sealer::Follow() {
  auto newest = store_.Range({.range = store::KeyRange::Key("none"), .limit = 1});
  if (!newest.ok()) return newest.status();
  while (seen_ < newest->revision) {
    auto next = watch_->Next(kPatience);
    if (!next.ok()) return next.status();
    // The new revisions contain no record yet: sealed next time.
    if (!next->has_value()) return OkStatus();
    for (const store::Change& change : (*next)->changes) {
      if (!change.deleted) unsealed_.push_back(DigestOf(change.entry));
    }
    seen_ = (*next)->revision;
  }
  return OkStatus();
}

StatusOr<std::optional<std::string>> Sealer::SealNew(const store::Compare& fence) {
  Status status = watch_ == nullptr ? Begin() : Follow();
  // The compaction has overtaken the watch: reads again.
  if (!status.ok() && watch_ != nullptr) status = Begin();
  if (!status.ok()) {
    watch_.reset();
    return status;
  }
  auto sealed = Seal(fence);
  if (!sealed.ok()) watch_.reset();
  return sealed;
}

StatusOr<std::optional<std::string>> Sealer::Seal(const store::Compare& fence) {
  auto seal = NextSeal(newest_.number == 0 ? nullptr : &newest_.seal, unsealed_, seen_);
  if (!seal.has_value()) return std::optional<std::string>();
  *seal->mutable_time() = model::Now();
  store::Transaction transaction;
  transaction.compares = {fence, store::Compare::Absent(SealKey(newest_.number + 1))};
  if (newest_.number != 0) {
    transaction.compares.push_back(
        store::Compare::ModifiedAt(SealKey(newest_.number), newest_.mod_revision));
  }
  transaction.then = {
      store::Operation::Put(SealKey(newest_.number + 1), seal->SerializeAsString())};
  auto result = store_.Txn(std::move(transaction));
  if (!result.ok()) return result.status();
  if (!result->succeeded) return Status(ECANCELED, "another controller does it now");
  newest_ = {newest_.number + 1, std::move(*seal), result->revision};
  unsealed_.clear();
  return std::optional<std::string>(HeadOf(newest_.seal));
}

}  // namespace rocegw::audit
