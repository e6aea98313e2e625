// SPDX-License-Identifier: Apache-2.0
// Every field of a tenant or pool has an effect that is listed here, or a gateway rejects the
// object.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "gateway/apply/settings_reader.h"
#include "rocegw/types/v1/tenant.pb.h"

namespace rocegw::apply {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using types::v1::ConfigObject;

// Place of an effect: a setting of a gateway's session layer, or elsewhere.
enum class Effect : uint8_t { kSetting, kElsewhere };
struct Known {
  Effect effect;
  const char* what;  // description of the effect
};

const std::map<std::string, Known> kLimits = {
    {"sessions", {Effect::kSetting, "e2e/pools Sessions_TheThirdProgramIsRefused"}},
    {"pds", {Effect::kSetting, "e2e/pools EveryLimit"}},
    {"cqs", {Effect::kSetting, "e2e/pools EveryLimit"}},
    {"qps", {Effect::kSetting, "e2e/pools EveryLimit"}},
    {"srqs", {Effect::kSetting, "e2e/pools EveryLimit"}},
    {"mrs", {Effect::kSetting, "e2e/pools EveryLimit"}},
    {"ahs", {Effect::kSetting, "e2e/pools EveryLimit"}},
    {"cm_ids", {Effect::kSetting, "e2e/pools EveryLimit"}},
    {"listeners", {Effect::kSetting, "e2e/pools EveryLimit"}},
    {"channels", {Effect::kSetting, "e2e/pools channels_test"}},
    {"registered_bytes", {Effect::kSetting, "e2e/pools EveryLimit"}},
    {"segment_bytes", {Effect::kSetting, "e2e/pools EveryLimit"}},
    {"descriptors", {Effect::kSetting, "unit/session charges_test"}},
    {"heap_bytes", {Effect::kSetting, "unit/session charges_test"}},
    {"remapped_bytes", {Effect::kSetting, "unit/session charges_test"}},
    {"connects_per_second", {Effect::kSetting, "e2e/pools EveryLimit"}},
    {"bytes_per_second", {Effect::kSetting, "unit/worker Peak_IsKept, e2e/fleet rate"}},
    {"packets_per_second", {Effect::kSetting, "unit/worker TenantsPeak_HoldsFor"}},
};

const std::map<std::string, Known> kPool = {
    {"gateways.labels", {Effect::kElsewhere, "unit/controllers placement"}},
    {"gateways.names", {Effect::kElsewhere, "unit/controllers placement"}},
    {"gateways.all", {Effect::kElsewhere, "unit/controllers placement"}},
    {"weight", {Effect::kSetting, "unit/worker Weights_DivideTenantsThenPools"}},
    {"slots", {Effect::kSetting, "unit/session_attach slot_sockets_test"}},
    {"attach.socket_mode", {Effect::kSetting, "unit/session_attach slot_sockets_test"}},
    {"attach.socket_owner", {Effect::kSetting, "unit/session_attach slot_sockets_test"}},
    {"attach.identity",
     {Effect::kSetting, "unit/session_attach attach_gate_test, e2e/pools Identity"}},
    {"attach.service_accounts", {Effect::kElsewhere, "unit/kube slot_keeper_test"}},
    {"ready_qps", {Effect::kSetting, "unit/session_objects ready_reserve_test, e2e/pools Ready"}},
    {"cc_policy", {Effect::kElsewhere, "unit/apply engine_test: the pool's window"}},
    {"addresses", {Effect::kSetting, "e2e/pools AddressesAndPeers"}},
    {"allowed_peers", {Effect::kSetting, "e2e/pools AddressesAndPeers"}},
    {"memory.trusted", {Effect::kSetting, "unit/session threads_test"}},
    {"memory.placement", {Effect::kSetting, "unit/session_objects placement_test PoolPlacement"}},
    {"memory.remap", {Effect::kSetting, "unit/session_attach attach_test: the greeting"}},
};

const std::map<std::string, Known> kTenant = {
    {"display_name", {Effect::kElsewhere, "for people: rocegwctl"}},
    {"donated_bytes", {Effect::kElsewhere, "unit/donors: the controller divides it among donors"}},
    {"weight", {Effect::kSetting, "unit/worker Weights_DivideTenantsThenPools"}},
    {"allowed_peers", {Effect::kSetting, "unit/session_attach pools_test"}},
};

// Lists the paths of all fields with values.
void Walk(const Descriptor& type, const std::string& path, std::vector<std::string>& out) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string at = path + std::string(field.name());
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_repeated()) {
      Walk(*field.message_type(), at + ".", out);
    } else {
      out.push_back(at);
    }
  }
}

// Writes a valid value that is not the default.
void Write(Message& message, const std::string& path) {
  const size_t dot = path.find('.');
  const auto& reflection = *message.GetReflection();
  const FieldDescriptor& field = *message.GetDescriptor()->FindFieldByName(path.substr(0, dot));
  if (dot != std::string::npos)
    return Write(*reflection.MutableMessage(&message, &field), path.substr(dot + 1));
  const std::string name(field.name());
  if (name == "service_accounts") {
    // Service accounts need it.
    Write(message, "identity");
    Message& account = *reflection.AddMessage(&message, &field);
    return Write(account, "namespace");
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(&message, &field, 2);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(&message, &field, 2);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, true);
    case FieldDescriptor::CPPTYPE_ENUM:
      // For identities and remapping, a value that is not the default.
      return reflection.SetEnumValue(
          &message, &field, name == "remap" ? int{types::v1::ALLOW} : int{types::v1::REQUIRED});
    default:
      break;
  }
  const std::string text = name == "addresses"       ? "10.0.0.1"
                           : name == "allowed_peers" ? "10.0.0.0/8"
                           : name == "cc_policy"     ? "ccPolicies/c"
                           : name == "names"         ? "gateways/g"
                           : name == "socket_owner"  ? "1000"
                                                     : "text";
  if (!field.is_repeated()) return reflection.SetString(&message, &field, text);
  if (field.is_map()) {
    ASSERT_EQ(name, "labels");
    (*static_cast<types::v1::GatewaySelector&>(message).mutable_labels())["key"] = text;
    return;
  }
  reflection.AddString(&message, &field, text);
}

const Known* Find(const std::map<std::string, Known>& fields, const std::string& path) {
  static const Known kCap{Effect::kElsewhere,
                          "unit/controllers capacity: checked when a pool is written"};
  const std::string name = path.substr(path.rfind('.') + 1);
  if (path.starts_with("fleet_cap.")) return &kCap;
  const bool limit = path.starts_with("quota.");
  const auto& where = limit ? kLimits : fields;
  const auto found = where.find(limit ? name : path);
  return found == where.end() ? nullptr : &found->second;
}

bool Rejected(const ConfigObject& object) {
  const auto wrong = CheckObject(object);
  // A committed amount without a limit above it is valid; everything else is valid, too.
  EXPECT_FALSE(wrong.has_value()) << wrong->text;
  return wrong.has_value();
}

TEST(EveryFieldOfAPool, HasAnEffectOrIsRejected) {
  std::vector<std::string> paths;
  Walk(*types::v1::PoolSpec::descriptor(), "", paths);
  ASSERT_GT(paths.size(), 40u);
  for (const std::string& path : paths) {
    ConfigObject object;
    object.set_name("tenants/t/pools/p");
    types::v1::PoolConfig& pool = *object.mutable_pool();
    pool.set_name(object.name());
    const tenant::PoolSettings before = ReadPool(pool);
    Write(*pool.mutable_spec(), path);
    if (Rejected(object)) continue;
    const Known* const known = Find(kPool, path);
    ASSERT_NE(known, nullptr) << path << " can be stored and nobody says what it does";
    if (known->effect == Effect::kSetting) {
      EXPECT_NE(ReadPool(pool), before) << path << " does not reach the gateway's settings";
    }
  }
}

TEST(EveryFieldOfATenant, HasAnEffectOrIsRejected) {
  std::vector<std::string> paths;
  Walk(*types::v1::TenantSpec::descriptor(), "", paths);
  ASSERT_GT(paths.size(), 40u);
  for (const std::string& path : paths) {
    const Known* const known = Find(kTenant, path);
    const std::string first = path.substr(0, path.find('.'));
    if (types::v1::TenantConfig::descriptor()->FindFieldByName(first) == nullptr) {
      // No gateway gets it.
      ASSERT_NE(known, nullptr) << path << " can be stored and nobody says what it does";
      EXPECT_EQ(known->effect, Effect::kElsewhere) << path << " does not reach gateways";
      continue;
    }
    ConfigObject object;
    object.set_name("tenants/t");
    types::v1::TenantConfig& tenant = *object.mutable_tenant();
    tenant.set_name(object.name());
    const tenant::TenantSettings before = ReadTenant(tenant);
    Write(tenant, path);
    if (Rejected(object)) continue;
    ASSERT_NE(known, nullptr) << path << " can be stored and nobody says what it does";
    if (known->effect == Effect::kSetting) {
      EXPECT_NE(ReadTenant(tenant), before) << path << " does not reach the gateway's settings";
    }
  }
}

}  // namespace
}  // namespace rocegw::apply
