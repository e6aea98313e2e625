// SPDX-License-Identifier: Apache-2.0
#include "gateway/apply/settings_reader.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "proto/rules/check.h"
#include "proto/rules/relations.h"
#include "proto/rules/resource_name.h"

namespace rocegw::apply {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using types::v1::ConfigObject;
using types::v1::Limits;

constexpr uint32_t kDefaultSocketMode = 0660;

// Returns the path of the first unknown field or value in the message; empty: none.
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

// The text was checked before.
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

const char* ReasonOf(rules::Rule rule) {
  switch (rule) {
    case rules::Rule::kRoom:
      return kNoCapacity;
    case rules::Rule::kForm:
      break;
  }
  return kInvalid;
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
  if (violations.empty()) return std::nullopt;
  const rules::Violation& first = violations.front();
  return Wrong{ReasonOf(first.rule), first.field + " " + first.text};
}

GatewaySettings ReadGateway(const types::v1::GatewayConfig& config) {
  GatewaySettings settings;
  if (config.admin_state() == types::v1::DRAINING) settings.admin_state = types::v1::DRAINING;
  settings.drain_deadline =
      Seconds(config.drain_deadline().seconds()) + Nanoseconds(config.drain_deadline().nanos());
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

std::vector<wire::Gid> ReadPeer(const types::v1::PeerConfig& config) {
  std::vector<wire::Gid> addresses;
  for (const std::string& address : config.addresses()) addresses.push_back(AddressOf(address));
  return addresses;
}

tenant::PoolSettings ReadPool(const types::v1::PoolConfig& config) {
  const types::v1::PoolSpec& spec = config.spec();
  tenant::PoolSettings settings;
  settings.name = config.name();
  settings.uid = config.uid();
  settings.quota = QuotaOf(spec.quota());
  settings.quota.committed = ReadLimits(rules::CommittedOf(spec), {});
  settings.weight = std::max(spec.weight(), 1u);
  settings.slots = spec.slots();
  settings.ready_qps = spec.ready_qps();
  settings.identity_required = spec.attach().identity() == types::v1::REQUIRED;
  settings.socket_mode =
      spec.attach().socket_mode() == 0 ? kDefaultSocketMode : spec.attach().socket_mode();
  settings.socket_owner = spec.attach().socket_owner();
  settings.trusted = spec.memory().trusted();
  if (spec.memory().placement() != types::v1::PLACEMENT_UNSPECIFIED)
    settings.placement = spec.memory().placement() == types::v1::ENABLED;
  settings.remap_allowed = spec.memory().remap() == types::v1::ALLOW;
  for (const std::string& address : spec.addresses())
    settings.addresses.push_back(AddressOf(address));
  for (const std::string& peer : spec.allowed_peers())
    settings.allowed_peers.push_back(PrefixOf(peer));
  return settings;
}

// Fields of Limits and resources and rates have the same names.
tenant::Amounts ReadLimits(const Limits& limits, const tenant::Amounts& otherwise) {
  static_assert(Limits::kRemappedBytesFieldNumber == tenant::kResources + tenant::kRates,
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
