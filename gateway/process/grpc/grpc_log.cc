// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/grpc/grpc_log.h"

#include <grpc/support/log.h>

#include <string>

#include "gateway/process/log/foreign_lines.h"

namespace rocegw::process {
namespace {

ForeignLevel LevelOf(gpr_log_severity severity) {
  switch (severity) {
    case GPR_LOG_SEVERITY_DEBUG:
      return ForeignLevel::kDebug;
    case GPR_LOG_SEVERITY_INFO:
      return ForeignLevel::kInfo;
    case GPR_LOG_SEVERITY_ERROR:
      return ForeignLevel::kError;
  }
  return ForeignLevel::kError;
}

void OnMessage(gpr_log_func_args* message) {
  // Never destroyed: gRPC's threads may log until the process ends.
  static auto* const lines = new ForeignLines("gRPC");
  std::string text = message->message;
  text += " (";
  text += message->file;
  text += ":" + std::to_string(message->line) + ")";
  lines->Log(LevelOf(message->severity), text);
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(OnMessage); }

}  // namespace rocegw::process
