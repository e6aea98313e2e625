// SPDX-License-Identifier: Apache-2.0
#include "controlplane/upgrades/take_over_records.h"

#include <charconv>
#include <utility>

#include "controlplane/api/calls/audit_note.h"
#include "controlplane/model/json_text.h"

namespace rocegw::upgrades {
namespace {

// Records of a gateway that are written at a time: the number is foreign.
constexpr uint64_t kMostAtOnce = 50;
constexpr std::string_view kPrefix = "take-overs/";

std::string KeyOf(const std::string& gateway) { return std::string(kPrefix) + gateway; }

store::Operation AuditOf(const std::string& gateway, const std::string& who,
                         const types::v1::TakeOverSummary& report) {
  const api::Call call{.principal = gateway,
                       .peer = who,
                       .method = "take-over",
                       .request_id = {},
                       .request_digest = {},
                       .request_json = model::JsonText(report),
                       .etag_before = {}};
  return api::AuditOf(call, gateway);
}

}  // namespace

bool TakeOverRecords::Read() {
  if (read_) return true;
  auto rows = store_.Range({.range = store::KeyRange::Prefix(kPrefix)});
  if (!rows.ok()) return false;
  recorded_.clear();
  for (const store::Entry& entry : rows->entries) {
    Recorded& recorded = recorded_[entry.key.substr(kPrefix.size())];
    const char* const end = entry.value.data() + entry.value.size();
    (void)std::from_chars(entry.value.data(), end, recorded.count);
    recorded.revision = entry.mod_revision;
  }
  read_ = true;
  return true;
}

void TakeOverRecords::Record(const TakeOverReports& reports, const store::Compare& fence) {
  if (!Read()) return;
  for (const auto& [gateway, report] : reports) {
    Recorded& recorded = recorded_[gateway];
    if (report.count() == recorded.count) continue;
    store::Transaction transaction;
    transaction.compares = {store::Compare::ModifiedAt(KeyOf(gateway), recorded.revision), fence};
    transaction.then = {store::Operation::Put(KeyOf(gateway), std::to_string(report.count()))};
    // Only the newest of several take-overs since the last look has details. A gateway that was
    // restarted without a take-over counts from 0.
    uint64_t next = (report.count() > recorded.count ? recorded.count : 0) + 1;
    if (report.count() >= next + kMostAtOnce) next = report.count() - kMostAtOnce + 1;
    for (; next < report.count(); ++next) {
      types::v1::TakeOverSummary earlier;
      earlier.set_count(next);
      transaction.then.push_back(AuditOf(gateway, who_, earlier));
    }
    if (report.count() != 0) transaction.then.push_back(AuditOf(gateway, who_, report));
    auto written = store_.Txn(std::move(transaction));
    if (!written.ok() || !written->succeeded) return Forget();
    recorded = {.count = report.count(), .revision = written->revision};
  }
}

}  // namespace rocegw::upgrades
