"""Words by which a control's accessible name says that it buys or deletes. One table, by language.

Entries are separated by `|` and compared with whole words of the name, after both were brought to one form
(`normal_form`), so accents and case do not matter. `~` at an end stands for any ending of the word, for
languages that inflect. Where words are not separated (`SPACELESS`) the entry counts anywhere in the name.

A page names its own buttons, so a page that wants to deceive can: this finds honest names, and the rest is
what modes, approvals of sites and the person's eyes are for.
"""

PURCHASE, DELETION = "purchase", "deletion"

SPACELESS = frozenset({"ja", "zh", "th"})

_TABLE: dict[str, dict[str, str]] = {
    "en": {
        PURCHASE: (
            "buy|buy now|purchase|pay|pay now|place order|place your order|order now|complete order|"
            "confirm order|submit order|complete purchase|confirm purchase|confirm payment|make payment|"
            "send money|checkout|check out|proceed to checkout|subscribe|start subscription|"
            "start free trial|start trial|upgrade plan|donate|rent|bid|place bid|book now|"
            "confirm booking|reserve now|top up|transfer money"
        ),
        DELETION: (
            "delete|deletes|remove|erase|wipe|destroy|discard|trash|move to trash|empty trash|empty bin|"
            "clear all|clear history|clear data|close account|close my account|deactivate|terminate|"
            "purge|cancel subscription|cancel order|reset to factory|factory reset|revoke|unpublish"
        ),
    },
    "de": {
        PURCHASE: (
            "kaufen|jetzt kaufen|zahlungspflichtig~|kostenpflichtig~|bezahlen|zahlen|jetzt bestellen|"
            "bestellung abschicken|bestellung aufgeben|bestellen|zur kasse|kasse|abonnieren|"
            "abo abschliessen|spenden|jetzt buchen|verbindlich buchen|mieten|gebot abgeben|ueberweisen|"
            "aufladen"
        ),
        DELETION: (
            "loeschen|entfernen|verwerfen|papierkorb|vernichten|konto schliessen|deaktivieren|kuendigen|"
            "stornieren|zuruecksetzen|widerrufen"
        ),
    },
    "fr": {
        PURCHASE: (
            "acheter|payer|commander|passer commande|passer la commande|valider la commande|"
            "finaliser la commande|paiement|s'abonner|faire un don|reserver|louer|encherir"
        ),
        DELETION: (
            "supprimer|effacer|retirer|enlever|vider|corbeille|detruire|cloturer|fermer le compte|"
            "desactiver|resilier|annuler la commande|reinitialiser"
        ),
    },
    "es": {
        PURCHASE: (
            "comprar|compra ahora|pagar|realizar pedido|hacer pedido|finalizar compra|tramitar pedido|"
            "confirmar pedido|suscribir~|donar|reservar|alquilar|pujar"
        ),
        DELETION: (
            "eliminar|borrar|suprimir|quitar|vaciar|papelera|cerrar cuenta|cerrar la cuenta|desactivar|"
            "dar de baja|cancelar pedido|cancelar suscripcion|restablecer|descartar"
        ),
    },
    "it": {
        PURCHASE: (
            "acquista|acquistare|compra|comprare|paga|pagare|ordina|procedi all'ordine|conferma ordine|"
            "invia ordine|alla cassa|vai alla cassa|abbonati|dona|prenota"
        ),
        DELETION: (
            "elimina|eliminare|cancella|cancellare|rimuovi|rimuovere|svuota|cestino|chiudi account|"
            "disattiva|disdici|annulla ordine|ripristina"
        ),
    },
    "pt": {
        PURCHASE: (
            "comprar|compre|pagar|finalizar compra|fechar pedido|fazer pedido|confirmar pedido|"
            "encomendar|assinar|doar|reservar|alugar|dar lance"
        ),
        DELETION: (
            "excluir|apagar|eliminar|remover|deletar|esvaziar|lixeira|encerrar conta|desativar|"
            "cancelar pedido|cancelar assinatura|descartar"
        ),
    },
    "nl": {
        PURCHASE: (
            "kopen|koop|nu kopen|betalen|afrekenen|bestellen|bestelling plaatsen|abonneren|doneren|"
            "nu boeken|huren|bieden"
        ),
        DELETION: (
            "verwijderen|verwijder|wissen|prullenbak|account sluiten|deactiveren|opzeggen|annuleren|"
            "vernietigen"
        ),
    },
    "sv": {
        PURCHASE: "kop|kopa|kop nu|betala|bestall|slutfor kop|till kassan|prenumerera|donera",
        DELETION: (
            "ta bort|radera|papperskorg~|avsluta konto|sag upp|tom papperskorgen|slang i papperskorgen"
        ),
    },
    "pl": {
        PURCHASE: (
            "kup|kupuje|kup teraz|zaplac|zamawiam|zamow|zloz zamowienie|do kasy|subskrybuj|"
            "przekaz darowizne|zarezerwuj|licytuj"
        ),
        DELETION: "usun|skasuj|wyczysc|kosz|oproznij kosz|zamknij konto|dezaktywuj|anuluj zamowienie",
    },
    "tr": {
        PURCHASE: "satin al|hemen al|ode|odeme yap|siparis ver|siparisi onayla|abone ol|bagis yap",
        DELETION: "sil|kaldir|temizle|cop kutusu~|hesabi kapat|iptal et",
    },
    "ru": {
        PURCHASE: (
            "купить|купит~|оплатить|оплата|заказать|оформить заказ|подтвердить заказ|подписаться|"
            "пожертвовать|забронировать"
        ),
        DELETION: (
            "удалить|удалит~|удаление|стереть|очистить|убрать|корзину очистить|очистить корзину|"
            "закрыть аккаунт|деактивировать|отменить заказ"
        ),
    },
    "uk": {
        PURCHASE: "купити|придбати|сплатити|оплатити|замовити|оформити замовлення|підписатися",
        DELETION: "видалити|стерти|очистити|вилучити|деактивувати|скасувати замовлення",
    },
    "ar": {
        PURCHASE: "شراء|اشتر|اشتري|ادفع|دفع|الدفع|اطلب الان|تاكيد الطلب|اشترك|تبرع",
        DELETION: "حذف|احذف|ازاله|مسح|امسح|اغلاق الحساب|الغاء الطلب",
    },
    "hi": {
        PURCHASE: "खरीद~|भुगतान~|ऑर्डर करें|ऑर्डर दें|सदस्यता लें|दान करें",
        DELETION: "हटाए~|हटा~|मिटा~|डिलीट~|खाता बंद करें",
    },
    "ko": {
        PURCHASE: "구매~|구입~|결제~|주문~|바로구매~|구독~|후원~|예약~",
        DELETION: "삭제~|제거~|지우기|비우기|탈퇴~|해지~|초기화~",
    },
    "ja": {
        PURCHASE: "購入|買う|支払|決済|注文|レジに進む|申し込む|寄付|予約を確定|入札|送金",
        DELETION: "削除|消去|取り除く|ゴミ箱|破棄|退会|解約|初期化|取り消",
    },
    "zh": {
        PURCHASE: (
            "购买|購買|付款|支付|结算|結帳|结账|下单|下單|提交订单|提交訂單|订阅|訂閱|捐款|捐赠|转账|"
            "轉帳|立即抢购"
        ),
        DELETION: "删除|刪除|移除|清空|清除|销毁|注销|註銷|回收站|垃圾桶|取消订单|取消訂單|重置",
    },
    "th": {
        PURCHASE: "ซื้อ|ชำระเงิน|สั่งซื้อ|จ่ายเงิน|บริจาค",
        DELETION: "ลบ|นำออก|ล้างข้อมูล|ปิดบัญชี",
    },
}

NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    language: {group: tuple(words.split("|")) for group, words in groups.items()}
    for language, groups in _TABLE.items()
}
