// SPDX-License-Identifier: Apache-2.0
// Conversion between connection manager values of the attach protocol and of the engine. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/cm/cm_action.h"
#include "gateway/cm/cm_types.h"
#include "gateway/cm/qp_attributes.h"

namespace rocegw::session {

// Returns nothing for an address family that RoCEv2 does not have. Family 0 is an IPv6 wildcard
// without a port.
std::optional<cm::Endpoint> EndpointOf(const rocegw_sockaddr& address);
// Converts an endpoint; an unset endpoint becomes family 0.
rocegw_sockaddr SockaddrOf(const cm::Endpoint& endpoint);

cm::ConnectParams ParamsOf(const rocegw_cm_param& param);

rocegw_cm_id_reply ReplyOf(const cm::IdInfo& info);
// Converts an event, without cookie and handles.
rocegw_cm_event RecordOf(const cm::CmEvent& event);
rocegw_cm_qp_attr_reply ReplyOf(const cm::QpAttributes& attributes);

}  // namespace rocegw::session
