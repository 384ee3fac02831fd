#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <memory>
#include <stdexcept>

#include "plugins/communicators/gloo/mesh.h"

namespace mulligan::gloo_ranks {
namespace {

std::string numeric(const sockaddr* address) {
  const bool is_4 = address->sa_family == AF_INET;
  char text[NI_MAXHOST] = {};
  const socklen_t bytes = is_4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (getnameinfo(address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text;
}

// An address of another machine can reach: IPv6's link-local ones hold on one link only.
bool is_global(const sockaddr* address) {
  if (address->sa_family == AF_INET) return true;
  if (address->sa_family != AF_INET6) return false;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

// The first address, of IPv4 where there is one, of the interfaces that `wanted` holds for.
template <typename Wanted>
std::string interface_address(Wanted&& wanted) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) throw std::runtime_error("the network interfaces cannot be listed");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* one = all; one; one = one->ifa_next) {
      if (!one->ifa_addr || one->ifa_addr->sa_family != family || !is_global(one->ifa_addr)) continue;
      if (wanted(*one)) return numeric(one->ifa_addr);
    }
  }
  return {};
}

std::string host_address(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0 || !found) {
    throw std::runtime_error(
        "'" + name +
        "' is not a network interface, address or name of this machine; 'ip address' lists them");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  return numeric(found->ai_addr);
}

}  // namespace

std::string listen_address(const std::string& interface_name, bool local) {
  if (!interface_name.empty()) {
    std::string address =
        interface_address([&](const ifaddrs& one) { return interface_name == one.ifa_name; });
    return address.empty() ? host_address(interface_name) : address;
  }
  if (local) return "127.0.0.1";
  std::string address = interface_address(
      [](const ifaddrs& one) { return (one.ifa_flags & IFF_UP) && !(one.ifa_flags & IFF_LOOPBACK); });
  if (address.empty()) {
    throw std::runtime_error(
        "no network interface of this machine is up, and there are ranks on other machines");
  }
  return address;
}

}  // namespace mulligan::gloo_ranks
