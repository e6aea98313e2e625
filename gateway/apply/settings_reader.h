// SPDX-License-Identifier: Apache-2.0
// Conversion of configuration objects to the gateway's settings, or to a reason for rejection.
// Every value of a message is checked here once; unknown fields are rejected, never ignored. Pure
// functions, any thread.
#pragma once

#include <google/protobuf/message.h>

#include <optional>
#include <string>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/tenant/settings.h"
#include "rocegw/types/v1/push.pb.h"

namespace rocegw::apply {

// Machine-readable reasons of rejections.
inline constexpr char kInvalid[] = "INVALID";
inline constexpr char kUnsupported[] = "UNSUPPORTED";
inline constexpr char kNoCapacity[] = "NO_CAPACITY";
inline constexpr char kMissingTenant[] = "MISSING_TENANT";
inline constexpr char kMissingCcPolicy[] = "MISSING_CC_POLICY";
inline constexpr char kAddressTaken[] = "ADDRESS_TAKEN";
inline constexpr char kAddressNotHere[] = "ADDRESS_NOT_HERE";
inline constexpr char kInUse[] = "IN_USE";
inline constexpr char kSocketFailed[] = "SOCKET_FAILED";

struct Wrong {
  std::string reason;
  std::string text;
};

// Settings of the gateway's own object.
struct GatewaySettings {
  types::v1::AdminState admin_state = types::v1::ACTIVE;
  Duration drain_deadline;  // 0: none
  types::v1::OnDeadline on_deadline = types::v1::KEEP;
  // Unset limits come from the gateway's own configuration file.
  types::v1::Limits capacity;
};

// Checks name, fields and ranges of an object. Returns nothing if it is valid.
std::optional<Wrong> CheckObject(const types::v1::ConfigObject& object);

// Reads an object that CheckObject accepted.
GatewaySettings ReadGateway(const types::v1::GatewayConfig& config);
tenant::TenantSettings ReadTenant(const types::v1::TenantConfig& config);
// The window comes from the policy that the pool names.
std::vector<wire::Gid> ReadPeer(const types::v1::PeerConfig& config);
tenant::PoolSettings ReadPool(const types::v1::PoolConfig& config);

// `otherwise`: values of unset fields.
tenant::Amounts ReadLimits(const types::v1::Limits& limits, const tenant::Amounts& otherwise);
// Leaves out unlimited values.
void FillLimits(const tenant::Amounts& amounts, types::v1::Limits& limits);

}  // namespace rocegw::apply
