// SPDX-License-Identifier: Apache-2.0
#include "proto/rules/relations.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

#include "proto/sizes/ready_reserve.h"

namespace rocegw::rules {
namespace {

using types::v1::AttachRules;
using types::v1::Limits;
using types::v1::PoolSpec;
using types::v1::Quota;
using types::v1::ServiceAccount;

std::string Below(const std::string& prefix, const std::string& field) {
  return prefix.empty() ? field : prefix + "." + field;
}

// Rejects a committed amount above the peak.
void CheckQuota(const Quota& quota, const std::string& prefix, std::vector<Violation>& violations) {
  const auto& reflection = *Limits::GetReflection();
  for (int i = 0; i < Limits::descriptor()->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* const limit = Limits::descriptor()->field(i);
    if (!reflection.HasField(quota.peak(), limit)) continue;
    const uint64_t peak = reflection.GetUInt64(quota.peak(), limit);
    const uint64_t committed = reflection.GetUInt64(quota.committed(), limit);
    if (committed <= peak) continue;
    violations.push_back({Below(prefix, "committed." + std::string(limit->name())),
                          "is " + std::to_string(committed) + ", more than the peak, which is " +
                              std::to_string(peak)});
  }
}

// Service accounts need identity REQUIRED: any pod may request any resource, so the check at the
// attach is the only one.
void CheckAttach(const AttachRules& attach, const std::string& prefix,
                 std::vector<Violation>& violations) {
  if (attach.service_accounts_size() == 0 || attach.identity() == types::v1::REQUIRED) return;
  violations.push_back({Below(prefix, "service_accounts"),
                        "need spec.attach.identity REQUIRED, or every pod could attach"});
}

// A namespace is given in exactly one of two forms.
void CheckAccount(const ServiceAccount& account, const std::string& prefix,
                  std::vector<Violation>& violations) {
  if (account.namespace_().empty() != account.namespace_labels().empty()) return;
  violations.push_back(
      {prefix, account.namespace_().empty()
                   ? "needs a namespace or namespace_labels"
                   : "has a namespace and namespace_labels: one of them says which"});
}

// The reserve counts against the pool's limits.
void CheckReserve(const PoolSpec& spec, const std::string& prefix,
                  std::vector<Violation>& violations) {
  const Limits& peak = spec.quota().peak();
  const std::string qps = std::to_string(spec.ready_qps());
  const uint64_t bytes = ReserveBytes(spec.ready_qps());
  const auto add = [&](std::string text) {
    violations.push_back({Below(prefix, "ready_qps"), std::move(text), Rule::kRoom});
  };
  if (peak.has_segment_bytes() && bytes > peak.segment_bytes()) {
    add("is " + qps + ": " + qps + " ready queue pairs take " + std::to_string(bytes) +
        " bytes of shared memory; quota.peak.segment_bytes is " +
        std::to_string(peak.segment_bytes()));
  }
  if (peak.has_qps() && spec.ready_qps() > peak.qps())
    add("is " + qps + "; quota.peak.qps is " + std::to_string(peak.qps()));
}

// Returns the message in its own type, which it must have.
template <typename Message>
Message As(const google::protobuf::Message& message) {
  Message typed;
  typed.CopyFrom(message);
  return typed;
}

}  // namespace

void CheckRelations(const google::protobuf::Message& message, const std::string& prefix,
                    std::vector<Violation>& violations) {
  const auto* const type = message.GetDescriptor();
  if (type == Quota::descriptor()) return CheckQuota(As<Quota>(message), prefix, violations);
  if (type == AttachRules::descriptor())
    return CheckAttach(As<AttachRules>(message), prefix, violations);
  if (type == ServiceAccount::descriptor())
    return CheckAccount(As<ServiceAccount>(message), prefix, violations);
  if (type == PoolSpec::descriptor())
    return CheckReserve(As<PoolSpec>(message), prefix, violations);
}

Limits CommittedOf(const PoolSpec& spec) {
  Limits committed = spec.quota().committed();
  if (spec.ready_qps() == 0) return committed;
  committed.set_qps(std::max<uint64_t>(committed.qps(), spec.ready_qps()));
  committed.set_segment_bytes(std::max(committed.segment_bytes(), ReserveBytes(spec.ready_qps())));
  return committed;
}

}  // namespace rocegw::rules
