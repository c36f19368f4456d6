// Confirmable CoAP messages and their retransmission, for the programs beside this file.

#ifndef WITNESS_COAP_H
#define WITNESS_COAP_H

#include "ns3/core-module.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace witness {

/// The parameters of a client (RFC 7252 §4.8). The timeout of a retransmission is doubled up to `maxTimeout`.
struct Parameters {
    double ackTimeout = 2.0;
    double ackRandomFactor = 1.5;
    double maxTimeout = 60.0;
    uint32_t maxRetransmit = 20;
};

/// One client's exchanges, one after the other (NSTART 1).
///
/// `send` puts the request with a Message ID on the wire. `over` is called when the exchange is answered, or given up.
class Exchanges {
public:
    using Send = std::function<void(uint16_t messageId)>;
    using Over = std::function<void(bool answered)>;

    Exchanges(const Parameters& parameters, Send send, Over over)
        : m_parameters(parameters), m_send(std::move(send)), m_over(std::move(over)) {
        m_draw = ns3::CreateObject<ns3::UniformRandomVariable>();
    }

    bool IsOpen() const { return m_open; }
    uint64_t Retransmissions() const { return m_retransmissions; }

    /// Begins the next exchange, with a new Message ID. None is open.
    void Begin(uint16_t messageId) {
        m_open = true;
        m_retransmits = 0;
        m_messageId = messageId;
        m_timeout = m_draw->GetValue(m_parameters.ackTimeout, m_parameters.ackTimeout * m_parameters.ackRandomFactor);
        Transmit();
    }

    /// Handles an answer. One with an old Message ID is ignored.
    void Answered(uint16_t messageId) {
        if (m_open && messageId == m_messageId) {
            m_timer.Cancel();
            m_open = false;
            m_over(true);
        }
    }

private:
    void Transmit() {
        const double timeout = std::min(m_timeout, m_parameters.maxTimeout);
        m_timer = ns3::Simulator::Schedule(ns3::Seconds(timeout), &Exchanges::Expired, this);
        m_send(m_messageId);
    }

    void Expired() {
        if (m_retransmits == m_parameters.maxRetransmit) {
            m_open = false;
            m_over(false);
            return;
        }
        m_retransmits++;
        m_retransmissions++;
        m_timeout *= 2;
        Transmit();
    }

    Parameters m_parameters;
    Send m_send;
    Over m_over;
    ns3::Ptr<ns3::UniformRandomVariable> m_draw;
    ns3::EventId m_timer;
    double m_timeout = 0;
    bool m_open = false;
    uint16_t m_messageId = 0;
    uint32_t m_retransmits = 0;
    uint64_t m_retransmissions = 0;
};

/// Returns a CoAP message (RFC 7252 §3): type 0 is confirmable, 2 an acknowledgement.
inline std::vector<uint8_t> Message(uint8_t type, uint8_t code, uint16_t messageId, const std::string& uriPath,
                                    std::size_t payloadBytes) {
    std::vector<uint8_t> bytes = {static_cast<uint8_t>(0x40 | type << 4), code, static_cast<uint8_t>(messageId >> 8),
                                  static_cast<uint8_t>(messageId)};
    if (!uriPath.empty()) {
        // Option 11, shorter than 13 bytes.
        bytes.push_back(static_cast<uint8_t>(11 << 4 | uriPath.size()));
        bytes.insert(bytes.end(), uriPath.begin(), uriPath.end());
    }
    if (payloadBytes > 0) {
        bytes.push_back(0xff);
        bytes.insert(bytes.end(), payloadBytes, 'x');
    }
    return bytes;
}

inline uint16_t MessageId(const std::vector<uint8_t>& bytes) {
    return static_cast<uint16_t>(bytes.at(2) << 8 | bytes.at(3));
}

} // namespace witness

#endif
