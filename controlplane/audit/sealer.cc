// SPDX-License-Identifier: Apache-2.0
#include "controlplane/audit/sealer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "controlplane/audit/chain.h"
#include "controlplane/model/stored.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::audit {
namespace {

constexpr size_t kPage = 1000;
// Keys of records are in the order of the clocks of those who wrote them, which may differ.
constexpr int64_t kSkewSeconds = 24 * 3600;

std::string SealKey(uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return std::string(kSealPrefix) + text;
}

struct Newest {
  uint64_t number = 0;  // 0: there is none
  controlplane::v1::AuditSeal seal;
  store::Revision mod_revision = 0;
};

StatusOr<Newest> FindNewest(store::Store& store) {
  Newest newest;
  store::RangeRequest request{.range = store::KeyRange::Prefix(kSealPrefix), .limit = kPage};
  for (;;) {
    auto page = store.Range(request);
    if (!page.ok()) return page.status();
    newest.number += page->entries.size();
    if (!page->entries.empty()) {
      const store::Entry& last = page->entries.back();
      newest.mod_revision = last.mod_revision;
      if (!newest.seal.ParseFromString(last.value))
        return Status(EUCLEAN, last.key + " is not a seal");
    }
    if (!page->more) return newest;
    request.range = request.range.After(page->entries.back().key);
    request.revision = page->revision;
  }
}

}  // namespace

StatusOr<std::optional<std::string>> SealNew(store::Store& store, const store::Compare& fence) {
  auto newest = FindNewest(store);
  if (!newest.ok()) return newest.status();
  store::RangeRequest request{.range = store::KeyRange::Prefix(model::kAuditPrefix),
                              .limit = kPage};
  if (newest->number != 0) {
    google::protobuf::Timestamp from = newest->seal.time();
    from.set_seconds(std::max<int64_t>(0, from.seconds() - kSkewSeconds));
    request.range.begin = model::AuditKeyFrom(from);
  }
  std::vector<Digested> records;
  for (;;) {
    auto page = store.Range(request);
    if (!page.ok()) return page.status();
    request.revision = page->revision;
    for (const store::Entry& entry : page->entries) {
      if (entry.mod_revision > newest->seal.revision()) records.push_back(DigestOf(entry));
    }
    if (!page->more) break;
    request.range = request.range.After(page->entries.back().key);
  }
  auto seal =
      NextSeal(newest->number == 0 ? nullptr : &newest->seal, std::move(records), request.revision);
  if (!seal.has_value()) return std::optional<std::string>();
  *seal->mutable_time() = model::Now();
  store::Transaction transaction;
  transaction.compares = {fence, store::Compare::Absent(SealKey(newest->number + 1))};
  if (newest->number != 0) {
    transaction.compares.push_back(
        store::Compare::ModifiedAt(SealKey(newest->number), newest->mod_revision));
  }
  transaction.then = {
      store::Operation::Put(SealKey(newest->number + 1), seal->SerializeAsString())};
  auto result = store.Txn(std::move(transaction));
  if (!result.ok()) return result.status();
  if (!result->succeeded) return Status(ECANCELED, "another controller does it now");
  return std::optional<std::string>(HeadOf(*seal));
}

}  // namespace rocegw::audit
