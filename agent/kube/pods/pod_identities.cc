// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/pods/pod_identities.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

namespace rocegw::agent {
namespace {

// Accepts names of Kubernetes objects only, which are used in URL paths.
bool IsName(const std::string& text) {
  return !text.empty() && text != "." && text != ".." &&
         std::ranges::all_of(text, [](unsigned char c) {
           return (std::isalnum(c) != 0 && std::isupper(c) == 0) || c == '-' || c == '.';
         });
}

std::string TextAt(const nlohmann::json& object, const char* pointer) {
  const nlohmann::json::json_pointer at(pointer);
  if (!object.is_object() || !object.contains(at) || !object.at(at).is_string()) return {};
  return object.at(at).get<std::string>();
}

std::map<std::string, std::string> LabelsOf(const nlohmann::json& object) {
  std::map<std::string, std::string> labels;
  const nlohmann::json::json_pointer at("/metadata/labels");
  if (!object.is_object() || !object.contains(at) || !object.at(at).is_object()) return labels;
  for (const auto& [key, value] : object.at(at).items())
    if (value.is_string()) labels[key] = value.get<std::string>();
  return labels;
}

}  // namespace

void PodIdentities::Ask(const PodName& pod, const std::string& uid, Told told) {
  if (server_ == nullptr) {
    return told(Status(ENOTCONN,
                       "the pool names service accounts or labels of namespaces, and this agent "
                       "does not ask the API server (kubernetes.api_server)"));
  }
  if (!IsName(pod.name_space) || !IsName(pod.name))
    return told(Status(EINVAL, "the pod's name is none of Kubernetes'"));
  AskAccount(pod, uid,
             [this, name_space = pod.name_space,
              told = std::move(told)](const StatusOr<std::string>& account) {
               if (!account.ok()) return told(account.status());
               AskLabels(name_space, account.value(), told);
             });
}

void PodIdentities::AskAccount(const PodName& pod, const std::string& uid,
                               std::function<void(const StatusOr<std::string>&)> told) {
  if (const auto known = accounts_.find(uid); known != accounts_.end()) return told(known->second);
  Get("/api/v1/namespaces/" + pod.name_space + "/pods/" + pod.name,
      [this, pod, uid, told = std::move(told)](const StatusOr<kubeapi::ApiAnswer>& answer) {
        if (!answer.ok()) return told(answer.status());
        const nlohmann::json& object = answer.value().object;
        if (TextAt(object, "/metadata/uid") != uid) {
          return told(Status(ESTALE, "the API server's pod " + pod.name_space + "/" + pod.name +
                                         " is another one than the program's"));
        }
        std::string account = TextAt(object, "/spec/serviceAccountName");
        if (account.empty()) return told(Status(EBADMSG, "the API server names no account of it"));
        if (accounts_.size() >= kMostKnown) accounts_.clear();
        accounts_[uid] = account;
        told(std::move(account));
      });
}

void PodIdentities::AskLabels(const std::string& name_space, std::string account,
                              const Told& told) {
  const auto known = labels_.find(name_space);
  if (known != labels_.end() && ControlLoop::Now() - known->second.asked_at < kLabelAge)
    return told(PodIdentity{std::move(account), known->second.labels});
  Get("/api/v1/namespaces/" + name_space,
      [this, name_space, account = std::move(account), told,
       asked_at = ControlLoop::Now()](const StatusOr<kubeapi::ApiAnswer>& answer) {
        if (!answer.ok()) return told(answer.status());
        if (labels_.size() >= kMostKnown) labels_.clear();
        labels_[name_space] = {LabelsOf(answer.value().object), asked_at};
        told(PodIdentity{account, labels_[name_space].labels});
      });
}

void PodIdentities::Get(const std::string& path, Answered answered) {
  std::vector<Answered>& asking = asking_[path];
  asking.push_back(std::move(answered));
  if (asking.size() > 1) return;
  server_->Call({"GET", path, "", ""}, [&loop = loop_, this, path, alive = alive_](
                                           const StatusOr<kubeapi::ApiAnswer>& answer) {
    (void)loop.Post([this, path, alive, answer] {
      if (!*alive) return;
      const auto waiting = std::exchange(asking_[path], {});
      asking_.erase(path);
      for (const Answered& one : waiting) one(answer);
    });
  });
}

}  // namespace rocegw::agent
