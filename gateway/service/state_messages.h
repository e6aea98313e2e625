// SPDX-License-Identifier: Apache-2.0
// Conversion of the state source's rows to messages of rocegw.types.v1. Pure functions.
#pragma once

#include <string>

#include "gateway/service/identity.h"
#include "gateway/session/state/state_rows.h"
#include "rocegw/gateway/v1/state.pb.h"

namespace rocegw::service {

// `parent` is "gateways/G".
void FillSession(const std::string& parent, const session::SessionRow& row,
                 types::v1::Session& out);
void FillQp(const std::string& parent, const session::QpRow& row, types::v1::QueuePair& out);
void FillConnection(const std::string& parent, const session::ConnectionRow& row,
                    types::v1::Connection& out);
void FillChannel(const std::string& parent, const session::ChannelRow& row,
                 types::v1::Channel& out);
void FillMr(const std::string& parent, const session::MrRow& row, types::v1::MemoryRegion& out);
void FillSrq(const std::string& parent, const session::SrqRow& row,
             types::v1::SharedReceiveQueue& out);
void FillPool(const session::PoolRow& row, types::v1::PoolUsage& out);
void FillEvent(const session::EventRow& row, types::v1::GatewayEvent& out);
void FillDrain(const session::DrainRow& row, types::v1::DrainProgress& out);
void FillStatus(const GatewayIdentity& identity, const std::string& not_ready_reason,
                const session::StateSnapshot& snapshot, types::v1::GatewayStatus& out);
void FillCounters(const session::StateSnapshot& snapshot, gateway::v1::GetCountersResponse& out);
void FillTime(int64_t ns, google::protobuf::Timestamp& out);
void FillDuration(Duration from, google::protobuf::Duration& out);
void FillTotals(const session::Totals& from, types::v1::GatewayTotals& out);

}  // namespace rocegw::service
