// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/housekeeper.h"

#include <google/protobuf/util/time_util.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "controlplane/identity/join_token.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::server {
namespace {

using google::protobuf::util::TimeUtil;
using identity::TimePoint;

constexpr std::string_view kRequestPrefix = "request/";
constexpr size_t kPage = 1000;
constexpr size_t kPerTransaction = 100;

TimePoint TimeOf(const google::protobuf::Timestamp& time) {
  return TimePoint(std::chrono::microseconds(TimeUtil::TimestampToMicroseconds(time)));
}

Status Remove(store::Store& store, const store::Compare& fence,
              const std::vector<std::string>& keys) {
  for (size_t begin = 0; begin < keys.size(); begin += kPerTransaction) {
    store::Transaction transaction{.compares = {fence}, .then = {}, .otherwise = {}};
    for (size_t i = begin; i < keys.size() && i < begin + kPerTransaction; ++i) {
      transaction.then.push_back(store::Operation::Delete(keys[i]));
    }
    auto result = store.Txn(std::move(transaction));
    if (!result.ok()) return result.status();
    if (!result->succeeded) return {ECANCELED, "another controller does it now"};
  }
  return OkStatus();
}

// Page by page: there may be very many.
Status RemoveServed(store::Store& store, const store::Compare& fence, std::string_view prefix,
                    TimePoint now) {
  store::RangeRequest request{.range = store::KeyRange::Prefix(prefix), .limit = kPage};
  for (;;) {
    auto page = store.Range(request);
    if (!page.ok()) return page.status();
    if (Status status = Remove(store, fence, ServedKeys(page->entries, now)); !status.ok()) {
      return status;
    }
    if (!page->more) return OkStatus();
    request.range = request.range.After(page->entries.back().key);
  }
}

}  // namespace

std::vector<std::string> ServedKeys(const std::vector<store::Entry>& entries, TimePoint now) {
  std::vector<std::string> keys;
  for (const store::Entry& entry : entries) {
    bool served = false;
    if (entry.key.starts_with(kRequestPrefix)) {
      controlplane::v1::RequestRecord record;
      served = !record.ParseFromString(entry.value) || TimeOf(record.time()) + kKeepRequests <= now;
    } else if (entry.key.starts_with(identity::kJoinPrefix)) {
      controlplane::v1::JoinTokenRecord record;
      served = !record.ParseFromString(entry.value) || TimeOf(record.expire_time()) <= now;
    }
    if (served) keys.push_back(entry.key);
  }
  return keys;
}

void Past::Note(TimePoint time, store::Revision revision) {
  if (noted_.empty() || noted_.back().second < revision) noted_.emplace_back(time, revision);
}

store::Revision Past::TakeBefore(TimePoint time) {
  store::Revision revision = 0;
  while (!noted_.empty() && noted_.front().first <= time) {
    revision = noted_.front().second;
    noted_.pop_front();
  }
  return revision;
}

Status Housekeeping::Round(const store::Compare& fence, TimePoint now) {
  if (!removed_.has_value() || now >= *removed_ + kRemoveEvery) {
    for (const std::string_view prefix : {kRequestPrefix, identity::kJoinPrefix}) {
      if (Status status = RemoveServed(store_, fence, prefix, now); !status.ok()) return status;
    }
    removed_ = now;
  }
  auto sealed = sealer_.SealNew(fence);
  if (!sealed.ok()) return sealed.status();
  // Logged, because a truncated store cannot detect its truncation.
  if (sealed->has_value()) spdlog::info("audit records are sealed, head {}", **sealed);
  auto newest = store_.Range({.range = store::KeyRange::Key(fence.key), .limit = 1});
  if (!newest.ok()) return newest.status();
  past_.Note(now, newest->revision);
  const store::Revision old = past_.TakeBefore(now - keep_history_);
  return old == 0 ? OkStatus() : store_.Compact(old);
}

Housekeeper::Housekeeper(store::Store& store, Options options)
    : store_(store),
      options_(std::move(options)),
      election_(store, {.key = "election/housekeeper", .candidate = options_.candidate}, nullptr),
      thread_([this] { Run(); }) {}

Housekeeper::~Housekeeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void Housekeeper::Run() {
  Housekeeping housekeeping(store_, options_.keep_history);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, options_.interval, [this] { return stopping_; })) {
    lock.unlock();
    if (const auto term = election_.term(); term.has_value()) {
      const Status status = housekeeping.Round(term->fence, identity::Now());
      if (!status.ok()) spdlog::warn("housekeeping of the store: {}", status.text());
    }
    lock.lock();
  }
}

}  // namespace rocegw::server
