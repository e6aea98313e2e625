// SPDX-License-Identifier: Apache-2.0
// fake_kubelet ROOT: a kubelet (fake_kubelet.h) that does what is written to it, a line at a time,
// and answers each line with one of JSON:
//   wait RESOURCE COUNT              until so many devices are healthy
//   admit NAMESPACE POD RESOURCE     a pod with one container that asks for one
//   again RESOURCE DEVICE            its container starts again
//   release NAMESPACE POD            the pod has gone
//   restart                          kubelet starts anew
//   registrations RESOURCE           since the start
#include <google/protobuf/util/json_util.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/kubelet/fake_kubelet.h"

namespace {

using nlohmann::json;
using rocegw::testing::Admission;
using rocegw::testing::FakeKubelet;

json Answer(FakeKubelet& kubelet, const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  std::string a;
  std::string b;
  std::string c;
  words >> verb >> a >> b >> c;
  if (verb == "wait") return {{"ok", kubelet.WaitHealthy(a, std::stoul(b))}};
  if (verb == "again") return {{"problem", kubelet.StartAgain(a, b)}};
  if (verb == "registrations") return {{"count", kubelet.registrations(a)}};
  if (verb == "release") {
    kubelet.Release(a, b);
    return json::object();
  }
  if (verb == "restart") {
    kubelet.Stop();
    kubelet.Start();
    return json::object();
  }
  if (verb != "admit") return {{"problem", "no such command: " + line}};
  const Admission admission = kubelet.Admit(a, b, c);
  std::string container;
  (void)google::protobuf::util::MessageToJsonString(admission.container, &container);
  return {{"problem", admission.problem},
          {"device", admission.device},
          {"container", json::parse(container)}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: fake_kubelet ROOT\n";
    return 2;
  }
  FakeKubelet kubelet(argv[1]);
  kubelet.Start();
  for (std::string line; std::getline(std::cin, line);)
    std::cout << Answer(kubelet, line).dump() << std::endl;
  return 0;
}
