// SPDX-License-Identifier: Apache-2.0
// Check of certificates for all services on the TLS port, including gRPC's own. Without a
// certificate only joining and health are answered, and a certificate that was revoked, replaced or
// expired since the connection began does not count. Services check permissions separately. gRPC's
// threads.
#pragma once

#include <grpcpp/security/auth_metadata_processor.h>

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "controlplane/identity/certificate.h"
#include "controlplane/identity/revocations.h"

namespace rocegw::server {

// Returns true if the method ("/package.Service/Method") is answered without a certificate.
bool IsOpenMethod(std::string_view method);

class ConnectionGuard final : public grpc::AuthMetadataProcessor {
 public:
  ConnectionGuard(identity::Revocations& revocations, std::string domain)
      : revocations_(revocations), domain_(std::move(domain)) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

 private:
  struct Known {
    std::string uri;
    std::string serial;
    identity::TimePoint not_before;
    identity::TimePoint not_after;
  };
  // Parses a certificate once, not once per call.
  Known Read(const std::string& pem);

  identity::Revocations& revocations_;
  const std::string domain_;
  std::mutex mutex_;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace rocegw::server
