// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/writes/write.h"

#include <algorithm>

#include "controlplane/model/stored.h"
#include "controlplane/store/random_uuid.h"

namespace rocegw::api {
namespace {

using model::Part;
using store::Compare;
using store::Operation;

std::string IntentKey(const std::string& name) {
  return model::KeyOf(Part::kIntent, model::NameOf(name));
}

}  // namespace

// The random part distinguishes records of the same time.
std::string AuditKey(const google::protobuf::Timestamp& time) {
  return model::AuditKeyFrom(time) + store::RandomUuid();
}

store::Transaction ToTransaction(const Plan& plan, const Records& records) {
  store::Transaction transaction;
  const std::string key = model::KeyOf(Part::kIntent, plan.name);
  transaction.compares.push_back(Compare::ModifiedAt(key, plan.replaces));
  for (const std::string& name : plan.needs)
    transaction.compares.push_back(Compare::Exists(IntentKey(name)));
  for (const Guard& guard : plan.guards) {
    transaction.compares.push_back(Compare::ModifiedAt(guard.key, guard.revision));
    transaction.then.push_back(Operation::Put(guard.key, ""));
  }
  for (const Plan::Also& other : plan.also) {
    const std::string other_key = model::KeyOf(Part::kIntent, other.name);
    transaction.compares.push_back(Compare::ModifiedAt(other_key, other.replaces));
    transaction.then.push_back(Operation::Put(other_key, other.intent));
  }
  for (const Plan::Record& record : plan.records) {
    transaction.compares.push_back(Compare::ModifiedAt(record.key, record.replaces));
    transaction.then.push_back(Operation::Put(record.key, record.value));
  }
  if (plan.intent.has_value()) {
    transaction.then.push_back(Operation::Put(key, *plan.intent));
  } else {
    transaction.then.push_back(Operation::Delete(key));
    transaction.then.push_back(Operation::Delete(model::KeyOf(Part::kStatus, plan.name)));
  }
  transaction.then.push_back(Operation::Put(records.audit_key, records.audit.SerializeAsString()));
  if (!records.request_key.empty()) {
    transaction.compares.push_back(Compare::Absent(records.request_key));
    transaction.then.push_back(
        Operation::Put(records.request_key, records.request.SerializeAsString()));
  }
  transaction.otherwise.push_back(Operation::Get(key));
  for (const Plan::Also& other : plan.also)
    transaction.otherwise.push_back(Operation::Get(model::KeyOf(Part::kIntent, other.name)));
  for (const Plan::Record& record : plan.records)
    transaction.otherwise.push_back(Operation::Get(record.key));
  for (const Guard& guard : plan.guards) transaction.otherwise.push_back(Operation::Get(guard.key));
  for (const std::string& name : plan.needs)
    transaction.otherwise.push_back(Operation::Get(IntentKey(name)));
  if (!records.request_key.empty())
    transaction.otherwise.push_back(Operation::Get(records.request_key));
  return transaction;
}

Refused WhyRefused(const Plan& plan, const Records& records,
                   const store::TransactionResult& result) {
  Refused refused;
  size_t at = 0;
  const auto next = [&] {
    return at < result.results.size() ? result.results[at++].entry : std::nullopt;
  };
  if (const auto entry = next(); entry.has_value()) refused.is = entry->mod_revision;
  if (refused.is != plan.replaces) refused.newest = refused.is;
  for (const Plan::Also& other : plan.also) {
    const auto entry = next();
    if (entry.has_value() && entry->mod_revision != other.replaces)
      refused.newest = std::max(refused.newest, entry->mod_revision);
  }
  for (const Plan::Record& record : plan.records) {
    const auto entry = next();
    if (entry.has_value() && entry->mod_revision != record.replaces)
      refused.newest = std::max(refused.newest, entry->mod_revision);
  }
  for (const Guard& guard : plan.guards) {
    const auto entry = next();
    if (!entry.has_value() || entry->mod_revision == guard.revision) continue;
    refused.newest = std::max(refused.newest, entry->mod_revision);
  }
  for (const std::string& name : plan.needs) {
    if (!next().has_value()) refused.missing.push_back(name);
  }
  if (!records.request_key.empty()) {
    if (const auto entry = next(); entry.has_value()) {
      refused.answered_at = entry->mod_revision;
      refused.answered.emplace();
      if (!refused.answered->ParseFromString(entry->value)) refused.answered.reset();
    }
  }
  return refused;
}

}  // namespace rocegw::api
