// SPDX-License-Identifier: Apache-2.0
// fleet adopt, fleet rotate-keys, join-token, revoke.
#include <google/protobuf/util/time_util.h>

#include <iostream>

#include "controlplane/cli/commands/donor_commands.h"
#include "controlplane/cli/documents/quantity.h"
#include "controlplane/cli/program.h"
#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::cli {
namespace {

using google::protobuf::util::TimeUtil;

constexpr char kGatewaysService[] = "/rocegw.admin.v1.Gateways/";

struct FleetQuery {
  std::string gateway;
  std::string donor;  // "GATEWAY/DONOR" behind the word donor
  std::string lifetime;
};

std::string GatewayName(const std::string& text) {
  std::string name;
  (void)FullName(*FindKind("gateways"), text, {}, name);
  return name;
}

google::protobuf::Timestamp SecondsOf(google::protobuf::Timestamp time) {
  time.set_nanos(0);
  return time;
}

int Adopt(Program& program, const FleetQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::AdoptFleetRequest request;
  request.set_name(query.gateway.empty() ? "gateways/-" : GatewayName(query.gateway));
  admin::v1::AdoptFleetResponse response;
  if (auto result = program.objects().Write(kGatewaysService + std::string("AdoptFleet"), request,
                                            program.options.write, response);
      !result.ok()) {
    return Fail(result);
  }
  std::cout << response.gateways() << (response.gateways() == 1 ? " gateway" : " gateways")
            << " adopted\n";
  return kOk;
}

int RotateKeys(Program& program) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::RotateFleetKeysRequest request;
  admin::v1::RotateFleetKeysResponse response;
  if (auto result = program.objects().Write(kGatewaysService + std::string("RotateFleetKeys"),
                                            request, program.options.write, response);
      !result.ok()) {
    return Fail(result);
  }
  std::cout << "new keys from " << TimeUtil::ToString(SecondsOf(response.start_time()))
            << "; earlier ones are refused after "
            << TimeUtil::ToString(SecondsOf(response.done_time())) << "\n";
  return kOk;
}

int JoinToken(Program& program, const FleetQuery& query) {
  admin::v1::CreateJoinTokenRequest request;
  if (!query.gateway.empty()) request.set_name(GatewayName(query.gateway));
  if (!query.lifetime.empty()) {
    const auto lifetime = ParseDuration(query.lifetime);
    if (!lifetime.has_value()) {
      return FailUsage("--lifetime: '" + query.lifetime + "' is not a duration (90s, 15m, 24h)");
    }
    *request.mutable_lifetime() = TimeUtil::MillisecondsToDuration(*lifetime);
  }
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::CreateJoinTokenResponse response;
  if (auto result =
          program.rpc().Call(kGatewaysService + std::string("CreateJoinToken"), request, response);
      !result.ok()) {
    return Fail(result);
  }
  std::cout << response.token_file();
  return kOk;
}

int Revoke(Program& program, const FleetQuery& query) {
  if (!query.donor.empty()) {
    if (FindKind(query.gateway) == FindKind("donors")) return RevokeDonor(program, query.donor);
    return FailUsage("'" + query.donor +
                     "' behind a gateway: revoke GATEWAY, or donor GATEWAY/DONOR");
  }
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::RevokeGatewayRequest request;
  request.set_name(GatewayName(query.gateway));
  admin::v1::RevokeGatewayResponse response;
  if (auto result = program.objects().Write(kGatewaysService + std::string("RevokeGateway"),
                                            request, program.options.write, response);
      !result.ok()) {
    return Fail(result);
  }
  std::cout << request.name() << " revoked\n";
  return kOk;
}

}  // namespace

void AddFleetCommands(CLI::App& app, Program& program) {
  const auto query = std::make_shared<FleetQuery>();
  CLI::App* const fleet = program.Add(app, "fleet", "the fleet as a whole: adopt, rotate-keys",
                                      "  rocegwctl fleet adopt", nullptr);
  CLI::App* const adopt =
      program.Add(*fleet, "adopt", "make gateways of another store follow this one",
                  "  rocegwctl fleet adopt              all that report it (rocegwctl status)\n"
                  "  rocegwctl fleet adopt host-a\n"
                  "After a controller's store was lost or replaced, gateways keep what they run.\n"
                  "From now on they run what this store says; what it has not is removed.",
                  [&program, query] { return Adopt(program, *query); });
  adopt->add_option("GATEWAY", query->gateway, "only this one");

  program.Add(*fleet, "rotate-keys", "replace the keys by which gateways know one another",
              "  rocegwctl fleet rotate-keys\n"
              "Takes some minutes, and ends no connection. So do revoke and delete gateway.",
              [&program] { return RotateKeys(program); });

  CLI::App* const token =
      program.Add(app, "join-token", "print a file with which one host joins, once",
                  "  rocegwctl join-token --gateway host-a > join.yaml\n"
                  "  scp join.yaml host-a: && ssh host-a rocegw-agent --join join.yaml",
                  [&program, query] { return JoinToken(program, *query); });
  token
      ->add_option("-g,--gateway", query->gateway,
                   "only for this name; needed when it joined before")
      ->type_name("NAME");
  token->add_option("--lifetime", query->lifetime, "until when it is good; 1h, at most 1d")
      ->type_name("TIME");

  CLI::App* const revoke =
      program.Add(app, "revoke", "refuse a gateway's certificates, or a donor of memory",
                  "  rocegwctl revoke host-a && rocegwctl join-token --gateway host-a\n"
                  "  rocegwctl revoke donor host-a/donor    sessions move their data away\n"
                  "A gateway must join anew, a donor must be approved again.",
                  [&program, query] { return Revoke(program, *query); });
  revoke->add_option("GATEWAY", query->gateway, "its name, or the word donor")->required();
  revoke->add_option("DONOR", query->donor, "GATEWAY/DONOR, behind the word donor");
}

}  // namespace rocegw::cli
