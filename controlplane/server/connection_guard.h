// SPDX-License-Identifier: Apache-2.0
// The gate before all services on the TLS port, those of gRPC itself included: without a
// certificate only joining and health are answered, and a certificate that was revoked, replaced or
// has expired since the connection was made is none. Services ask again what their caller may do.
// gRPC's threads.
#pragma once

#include <grpcpp/security/auth_metadata_processor.h>

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "controlplane/identity/certificate.h"
#include "controlplane/identity/revocations.h"

namespace rocegw::server {

// Whether the method ("/package.Service/Method") is answered without a certificate.
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
  // Read once per certificate, not once per call.
  Known Read(const std::string& pem);

  identity::Revocations& revocations_;
  const std::string domain_;
  std::mutex mutex_;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace rocegw::server
