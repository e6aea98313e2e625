// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/join_token.h"

#include <google/protobuf/util/time_util.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <sstream>

#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::identity {
namespace {

using google::protobuf::util::TimeUtil;

constexpr std::string_view kTokenPrefix = "rocegw-join-";
constexpr size_t kTokenBytes = 32;

std::string Quoted(const std::string& text) {
  YAML::Emitter out;
  out << YAML::DoubleQuoted << text;
  return out.c_str();
}

}  // namespace

std::string TimeText(TimePoint time) {
  return TimeUtil::ToString(
      TimeUtil::SecondsToTimestamp(time.time_since_epoch() / std::chrono::seconds(1)));
}

std::string JoinTokenKey(std::string_view token) {
  return std::string(kJoinPrefix) + Hex(Sha256(token));
}

NewJoinToken MakeJoinToken(const std::string& gateway, std::chrono::seconds lifetime,
                           const std::string& principal, TimePoint now) {
  NewJoinToken made;
  made.token = std::string(kTokenPrefix) + Hex(RandomBytes(kTokenBytes));
  made.expires = now + lifetime;
  controlplane::v1::JoinTokenRecord record;
  *record.mutable_expire_time() =
      TimeUtil::MicrosecondsToTimestamp(made.expires.time_since_epoch().count());
  record.set_gateway(gateway);
  record.set_principal(principal);
  made.put = store::Operation::Put(JoinTokenKey(made.token), record.SerializeAsString());
  return made;
}

std::string WriteJoinFile(const JoinFile& file) {
  std::string text =
      file.token.empty()
          ? "# Lets agents in pods join the fleet: rocegw-agent --join THIS_FILE --pod-token FILE\n"
            "# Nothing in it is secret.\n"
          : "# Lets one host join the fleet: rocegw-agent --join THIS_FILE\n"
            "# Whoever has it can do that once, until " +
                file.expires + ". Hand it over in private.\n";
  text += "controllers: [";
  for (size_t i = 0; i < file.controllers.size(); ++i) {
    text += (i == 0 ? "" : ", ") + Quoted(file.controllers[i]);
  }
  text += "]\nserver_name: " + Quoted(file.server_name) + "\n";
  if (!file.gateway.empty()) text += "gateway: " + Quoted(file.gateway) + "\n";
  if (!file.token.empty()) {
    text += "token: " + Quoted(file.token) + "\n";
    text += "expires: " + Quoted(file.expires) + "\n";
  }
  text += "trust_bundle: |\n";
  std::istringstream lines(file.trust_bundle);
  for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  return text;
}

StatusOr<JoinFile> ReadJoinFile(const std::string& text) {
  JoinFile file;
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return Status(EINVAL, "not a file for joining: a mapping is expected");
    for (const auto& [key, target] :
         {std::pair{"server_name", &file.server_name}, {"trust_bundle", &file.trust_bundle}}) {
      if (!root[key]) return Status(EINVAL, std::string("not a file for joining: no ") + key);
      *target = root[key].as<std::string>();
    }
    if (root["token"]) file.token = root["token"].as<std::string>();
    if (root["gateway"]) file.gateway = root["gateway"].as<std::string>();
    if (root["expires"]) file.expires = root["expires"].as<std::string>();
    if (root["controllers"]) {
      for (const YAML::Node& one : root["controllers"]) {
        file.controllers.push_back(one.as<std::string>());
      }
    }
  } catch (const YAML::Exception& error) {
    return Status(EINVAL, "not a file for joining: " + error.msg);
  }
  if (file.controllers.empty()) return Status(EINVAL, "not a file for joining: no controllers");
  if (auto facts = FactsOfPem(file.trust_bundle); !facts.ok()) {
    return Status(EINVAL, "trust_bundle: " + facts.status().text());
  }
  return file;
}

}  // namespace rocegw::identity
