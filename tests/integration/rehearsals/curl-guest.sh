#!/bin/sh
# A guest made of curl alone: poll, see, approve. $1 is its endpoint; with "watch" as $2 it approves nothing.
url="$1/metadata/scheduledevents?api-version=2020-07-01"
while :; do
    document=$(curl --silent --max-time 5 --header Metadata:true "$url")
    for id in $(echo "$document" | grep -o '"EventId":"[^"]*","EventStatus":"Scheduled"' | cut -d'"' -f4); do
        [ "$2" = watch ] ||
            curl --silent --header Metadata:true --data "{\"StartRequests\":[{\"EventId\":\"$id\"}]}" "$url"
    done
    sleep 0.1
done
