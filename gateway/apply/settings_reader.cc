// SPDX-License-Identifier: Apache-2.0
#include "gateway/apply/settings_reader.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "proto/rules/check.h"
#include "proto/rules/formats.h"
#include "proto/rules/resource_name.h"

namespace rocegw::apply {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using types::v1::ConfigObject;
using types::v1::Limits;

constexpr uint32_t kDefaultSocketMode = 0660;
constexpr uint64_t kLeastWindow = 4096;

// Path of the first thing in the message that this version does not know; empty: none.
std::string FindUnknown(const Message& message, const std::string& path) {
  const auto& reflection = *message.GetReflection();
  const auto& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) return path + "field " + std::to_string(unknown.field(0).number());
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string at = path + std::string(field->name());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM && !field->is_repeated()) {
      const int value = reflection.GetEnumValue(message, field);
      if (field->enum_type()->FindValueByNumber(value) == nullptr)
        return at + " = " + std::to_string(value);
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const Message& part = field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                 : reflection.GetMessage(message, field);
      if (std::string found = FindUnknown(part, at + "."); !found.empty()) return found;
    }
  }
  return "";
}

// The text was checked.
wire::Gid AddressOf(const std::string& text) { return wire::ParseGid(text).value_or(wire::Gid()); }

tenant::Prefix PrefixOf(const std::string& text) {
  const size_t slash = text.find('/');
  tenant::Prefix prefix{AddressOf(text.substr(0, slash))};
  uint32_t bits = 0;
  std::from_chars(text.data() + slash + 1, text.data() + text.size(), bits);
  prefix.bits = static_cast<uint8_t>(bits + (prefix.address.IsV4() ? 96 : 0));
  return prefix;
}

tenant::Quota QuotaOf(const types::v1::Quota& quota) {
  return {ReadLimits(quota.committed(), {}),
          ReadLimits(quota.peak(), tenant::Amounts::Of(tenant::kUnlimited))};
}

// A committed amount above the peak cannot be meant.
std::optional<Wrong> CheckQuota(const types::v1::Quota& quota) {
  const tenant::Quota read = QuotaOf(quota);
  for (size_t limit = 0; limit < tenant::kResources + tenant::kRates; ++limit) {
    const bool held = limit < tenant::kResources;
    const size_t rate = limit - tenant::kResources;
    const uint64_t committed = held ? read.committed.held[limit] : read.committed.rates[rate];
    const uint64_t peak = held ? read.peak.held[limit] : read.peak.rates[rate];
    if (committed <= peak) continue;
    const std::string_view name = held ? tenant::kResourceNames[limit] : tenant::kRateNames[rate];
    return Wrong{kInvalid, "quota.committed." + std::string(name) + " is " +
                               std::to_string(committed) + ", more than the peak, which is " +
                               std::to_string(peak)};
  }
  return std::nullopt;
}

// Any pod may ask for any resource: only who is asked for at the attach is kept out. What is known
// of a pod there is its namespace.
std::optional<Wrong> CheckServiceAccounts(const types::v1::AttachRules& attach) {
  for (const types::v1::ServiceAccount& account : attach.service_accounts()) {
    if (!account.name().empty()) {
      return Wrong{kUnsupported,
                   "spec.attach.service_accounts: this gateway's version tells pods apart by "
                   "namespace only; leave name empty"};
    }
  }
  if (attach.service_accounts_size() != 0 && attach.identity() != types::v1::REQUIRED) {
    return Wrong{kInvalid,
                 "spec.attach.service_accounts need spec.attach.identity REQUIRED, or every pod "
                 "could attach"};
  }
  return std::nullopt;
}

// Address handles are made by the library alone; channels belong to gateways, not to pools.
std::optional<Wrong> CheckLimits(const types::v1::Quota& quota, const std::string& path) {
  for (const types::v1::Limits* limits : {&quota.committed(), &quota.peak()}) {
    const char* const name = limits->has_ahs()        ? "ahs"
                             : limits->has_channels() ? "channels"
                                                      : nullptr;
    if (name == nullptr) continue;
    Wrong wrong{kUnsupported, path};
    wrong.text.append(": ").append(name).append(" are not limited by this gateway's version");
    return wrong;
  }
  return std::nullopt;
}

// What is kept ready is part of what the pool may have.
std::optional<Wrong> CheckReserve(const types::v1::PoolSpec& spec) {
  const tenant::Amounts peak =
      ReadLimits(spec.quota().peak(), tenant::Amounts::Of(tenant::kUnlimited));
  const uint64_t qps = spec.ready_qps();
  const uint64_t bytes = tenant::ReserveBytes(spec.ready_qps());
  if (bytes > peak[tenant::Resource::kSegmentBytes]) {
    return Wrong{kNoCapacity, "spec.ready_qps: " + std::to_string(qps) +
                                  " ready queue pairs take " + std::to_string(bytes) +
                                  " bytes of shared memory; quota.peak.segment_bytes is " +
                                  std::to_string(peak[tenant::Resource::kSegmentBytes])};
  }
  if (qps > peak[tenant::Resource::kQps]) {
    return Wrong{kNoCapacity, "spec.ready_qps is " + std::to_string(qps) + "; quota.peak.qps is " +
                                  std::to_string(peak[tenant::Resource::kQps])};
  }
  return std::nullopt;
}

// Texts whose rules are written at the resources that they come from.
std::optional<Wrong> CheckLists(const ConfigObject& object) {
  const auto check = [](const auto& texts, types::v1::Format format,
                        const char* field) -> std::optional<Wrong> {
    for (const std::string& text : texts) {
      const std::string bad = rules::MismatchWithFormat(text, format);
      if (bad.empty()) continue;
      Wrong wrong{kInvalid, field};
      wrong.text.append(" '").append(text).append("' ").append(bad);
      return wrong;
    }
    return std::nullopt;
  };
  if (object.has_tenant())
    return check(object.tenant().allowed_peers(), types::v1::IP_PREFIX, "allowed_peers");
  const uint64_t window = object.cc_policy().window_bytes();
  if (window != 0 && window < kLeastWindow) {
    return Wrong{kInvalid, "window_bytes is " + std::to_string(window) +
                               ": a window below 4096 cannot hold one packet"};
  }
  if (object.has_peer())
    return check(object.peer().addresses(), types::v1::IP_ADDRESS, "addresses");
  return std::nullopt;
}

const std::string& NameIn(const ConfigObject& object) {
  switch (object.value_case()) {
    case ConfigObject::kGateway:
      return object.gateway().name();
    case ConfigObject::kCcPolicy:
      return object.cc_policy().name();
    case ConfigObject::kTenant:
      return object.tenant().name();
    case ConfigObject::kPool:
      return object.pool().name();
    case ConfigObject::kPeer:
      return object.peer().name();
    default:
      return object.name();
  }
}

const char* PatternOf(const ConfigObject& object) {
  switch (object.value_case()) {
    case ConfigObject::kGateway:
    case ConfigObject::kPeer:
      return "gateways/*";
    case ConfigObject::kCcPolicy:
      return "ccPolicies/*";
    case ConfigObject::kTenant:
      return "tenants/*";
    case ConfigObject::kPool:
      return "tenants/*/pools/*";
    default:
      return nullptr;
  }
}

}  // namespace

std::optional<Wrong> CheckObject(const ConfigObject& object) {
  if (std::string unknown = FindUnknown(object, ""); !unknown.empty()) {
    return Wrong{kUnsupported, unknown + " is not known to this gateway's version"};
  }
  if (object.value_case() == ConfigObject::kRemoved) return std::nullopt;
  const char* const pattern = PatternOf(object);
  if (pattern == nullptr) return Wrong{kInvalid, "has no value"};
  if (std::string bad = rules::MismatchWithPattern(object.name(), pattern, false); !bad.empty())
    return Wrong{kInvalid, "name " + bad};
  if (NameIn(object) != object.name())
    return Wrong{kInvalid, "the object in it is named '" + NameIn(object) + "'"};
  const auto violations = rules::Check(object);
  if (!violations.empty())
    return Wrong{kInvalid, violations.front().field + " " + violations.front().text};
  if (auto bad = CheckLists(object)) return bad;
  if (object.has_tenant()) {
    if (auto bad = CheckQuota(object.tenant().quota())) return bad;
    return CheckLimits(object.tenant().quota(), "quota");
  }
  if (object.has_pool()) {
    if (auto bad = CheckQuota(object.pool().spec().quota())) return bad;
    if (auto bad = CheckLimits(object.pool().spec().quota(), "spec.quota")) return bad;
    if (auto bad = CheckReserve(object.pool().spec())) return bad;
    return CheckServiceAccounts(object.pool().spec().attach());
  }
  return std::nullopt;
}

GatewaySettings ReadGateway(const types::v1::GatewayConfig& config) {
  GatewaySettings settings;
  if (config.admin_state() == types::v1::DRAINING) settings.admin_state = types::v1::DRAINING;
  const int64_t seconds = std::clamp<int64_t>(config.drain_deadline().seconds(), 0, 1'000'000'000);
  settings.drain_deadline = Seconds(seconds) + Nanoseconds(config.drain_deadline().nanos());
  if (config.on_deadline() != types::v1::ON_DEADLINE_UNSPECIFIED)
    settings.on_deadline = config.on_deadline();
  settings.capacity = config.capacity();
  return settings;
}

tenant::TenantSettings ReadTenant(const types::v1::TenantConfig& config) {
  tenant::TenantSettings settings;
  settings.name = config.name();
  settings.uid = config.uid();
  settings.quota = QuotaOf(config.quota());
  settings.weight = std::max(config.weight(), 1u);
  for (const std::string& peer : config.allowed_peers())
    settings.allowed_peers.push_back(PrefixOf(peer));
  return settings;
}

tenant::PoolSettings ReadPool(const types::v1::PoolConfig& config) {
  const types::v1::PoolSpec& spec = config.spec();
  tenant::PoolSettings settings;
  settings.name = config.name();
  settings.uid = config.uid();
  settings.quota = QuotaOf(spec.quota());
  settings.weight = std::max(spec.weight(), 1u);
  settings.slots = spec.slots();
  settings.ready_qps = spec.ready_qps();
  // What is kept ready is promised.
  if (settings.ready_qps != 0) {
    uint64_t& qps = settings.quota.committed[tenant::Resource::kQps];
    uint64_t& bytes = settings.quota.committed[tenant::Resource::kSegmentBytes];
    qps = std::max<uint64_t>(qps, settings.ready_qps);
    bytes = std::max(bytes, tenant::ReserveBytes(settings.ready_qps));
  }
  settings.identity_required = spec.attach().identity() == types::v1::REQUIRED;
  settings.socket_mode =
      spec.attach().socket_mode() == 0 ? kDefaultSocketMode : spec.attach().socket_mode();
  settings.socket_owner = spec.attach().socket_owner();
  settings.trusted = spec.memory().trusted();
  settings.remap_allowed = spec.memory().remap() == types::v1::ALLOW;
  for (const std::string& address : spec.addresses())
    settings.addresses.push_back(AddressOf(address));
  for (const std::string& peer : spec.allowed_peers())
    settings.allowed_peers.push_back(PrefixOf(peer));
  return settings;
}

// Fields of Limits and names of resources and rates are the same words.
tenant::Amounts ReadLimits(const Limits& limits, const tenant::Amounts& otherwise) {
  static_assert(Limits::kPacketsPerSecondFieldNumber == tenant::kResources + tenant::kRates,
                "every field of Limits is a resource or a rate");
  tenant::Amounts amounts = otherwise;
  const auto read = [&](std::string_view name, uint64_t& value) {
    const FieldDescriptor* const field = Limits::descriptor()->FindFieldByName(std::string(name));
    if (Limits::GetReflection()->HasField(limits, field))
      value = Limits::GetReflection()->GetUInt64(limits, field);
  };
  for (size_t i = 0; i < tenant::kResources; ++i) read(tenant::kResourceNames[i], amounts.held[i]);
  for (size_t i = 0; i < tenant::kRates; ++i) read(tenant::kRateNames[i], amounts.rates[i]);
  return amounts;
}

void FillLimits(const tenant::Amounts& amounts, Limits& limits) {
  const auto fill = [&](std::string_view name, uint64_t value) {
    if (value == tenant::kUnlimited) return;
    Limits::GetReflection()->SetUInt64(
        &limits, Limits::descriptor()->FindFieldByName(std::string(name)), value);
  };
  for (size_t i = 0; i < tenant::kResources; ++i) fill(tenant::kResourceNames[i], amounts.held[i]);
  for (size_t i = 0; i < tenant::kRates; ++i) fill(tenant::kRateNames[i], amounts.rates[i]);
}

}  // namespace rocegw::apply
